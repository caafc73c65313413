#pragma once
#include <sys/types.h>

#include <cstdint>

namespace rdmacc {

// Notices the end of another process that is not a child of this one. Its start time is kept, so
// that a later process with the same number is not taken for it.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid);
  // It has ended (a zombie has), or was not there when the watch began.
  bool gone() const;

 private:
  const pid_t pid_;
  const uint64_t started_;  // clock ticks since boot; 0: was not there
};

}  // namespace rdmacc
