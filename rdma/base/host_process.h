#pragma once
#include "rdma/base/base.h"

namespace rdmacc {

// A process of this host. Pids are used again: the low bits of the start time tell its successors
// apart.
struct HostProcess {
  uint32_t pid = 0;
  uint16_t start_time = 0;

  static HostProcess self();
  // False when it is gone: no such pid, a zombie, or another start time.
  bool alive() const;
};

}  // namespace rdmacc
