#include "engine/node/process_watch.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace rdmacc {
namespace {

// /proc/PID/stat: "pid (name) state ppid … starttime(22nd) …"; the name may hold anything.
uint64_t start_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 0;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  constexpr int kStateField = 3, kStartField = 22;
  for (int number = kStateField; number <= kStartField && fields >> field; ++number) {
    if (number == kStateField && (field == "Z" || field == "X")) return 0;
    if (number == kStartField) return std::strtoull(field.c_str(), nullptr, 10);
  }
  return 0;
}

}  // namespace

ProcessWatch::ProcessWatch(pid_t pid) : pid_(pid), started_(start_time_of(pid)) {}

bool ProcessWatch::gone() const { return started_ == 0 || start_time_of(pid_) != started_; }

}  // namespace rdmacc
