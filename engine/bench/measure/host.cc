#include "engine/bench/measure/host.h"

#include <sched.h>
#include <sys/utsname.h>
#include <time.h>

#include <fstream>

namespace rdmacc {
namespace {

// The first processor's; they are rarely of two kinds.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != line.npos) return line.substr(colon + 2);
  }
  return "";
}

uint32_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&cores));
}

std::string kernel_name() {
  utsname name;
  if (uname(&name) != 0) return "";
  return std::string(name.sysname) + " " + name.release;
}

}  // namespace

HostDescription describe_host() { return {processor_name(), usable_cores(), kernel_name()}; }

std::string utc_now() {
  const time_t now = time(nullptr);
  tm broken_down;
  gmtime_r(&now, &broken_down);
  char text[32];
  const size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &broken_down);
  return {text, length};
}

uint64_t thread_processor_ns() {
  timespec ran;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) != 0) return 0;
  return static_cast<uint64_t>(ran.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(ran.tv_nsec);
}

}  // namespace rdmacc
