#pragma once
#include <cstdint>
#include <string>

namespace rdmacc {

// The machine that a run was measured on; empty and 0 where the system does not say.
struct HostDescription {
  std::string processor;  // "AMD EPYC 7763 64-Core Processor"
  uint32_t cores = 0;     // that this process may use
  std::string kernel;     // "Linux 6.1.0-18-amd64"
};

HostDescription describe_host();
std::string utc_now();           // "2024-02-29T12:00:00Z"
uint64_t thread_processor_ns();  // of the thread that calls it, since it began

}  // namespace rdmacc
