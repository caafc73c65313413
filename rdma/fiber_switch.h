#pragma once
#include "rdma/base/base.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

// Tells AddressSanitizer which stack the thread is on: leave() on the old stack before a switch,
// arrive() on the new one after it. Compiles to nothing elsewhere.

namespace rdmacc {

class FiberSwitch {
 public:
#ifdef __SANITIZE_ADDRESS__
  void set_stack(const void* bottom, size_t bytes) {
    bottom_ = bottom;
    bytes_ = bytes;
  }
  void leave(const FiberSwitch& to) {
    __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
  }
  void leave_for_good(const FiberSwitch& to) {
    __sanitizer_start_switch_fiber(nullptr, to.bottom_, to.bytes_);
  }
  // The bounds of the stack that was left are learnt here (nullptr: they are known).
  void arrive(FiberSwitch* from) {
    if (from != nullptr) {
      __sanitizer_finish_switch_fiber(fake_stack_, &from->bottom_, &from->bytes_);
    } else {
      __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
    }
    fake_stack_ = nullptr;
  }

 private:
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
#else
  void set_stack(const void*, size_t) {}
  void leave(const FiberSwitch&) {}
  void leave_for_good(const FiberSwitch&) {}
  void arrive(FiberSwitch*) {}
#endif
};

}  // namespace rdmacc
