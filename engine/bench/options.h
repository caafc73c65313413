#pragma once
#include <optional>
#include <string>

#include "engine/session.h"
#include "engine/workloads/smallbank.h"

namespace rdmacc {

enum class FabricKind : uint8_t { kShm, kSim };
const char* fabric_name(FabricKind kind);

struct BenchOptions {
  enum class Command : uint8_t { kRun, kLimits };
  Command command = Command::kRun;
  std::string workload = "smallbank";
  Protocol protocol = Protocol::kOcc;
  StagePlan plan;  // without the stages that the protocol does not have
  FabricKind fabric = FabricKind::kShm;
  uint32_t nodes = 2, threads = 1, coroutines = 8, replicas = 0;
  double seconds = 10;
  uint64_t memory_mb = 1024;  // of each node
  uint32_t spin_us = 50;
  SmallbankOptions smallbank;
  uint64_t seed = 1;
  bool json = false;
  std::string history_file;     // empty: none
  double progress_seconds = 0;  // 0: no progress lines

  Topology topology() const;
};

// Options, or the exit code of a program that has said what is wrong (or printed its help).
struct ParsedOptions {
  std::optional<BenchOptions> options;
  int exit_code = 0;
};
constexpr int kExitUsage = 2;

ParsedOptions parse_options(int argc, char** argv);

}  // namespace rdmacc
