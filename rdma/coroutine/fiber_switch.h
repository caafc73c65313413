#pragma once
#include "rdma/base/base.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Tells AddressSanitizer or ThreadSanitizer which stack the thread is on: leave() on the old stack
// before a switch, arrive() on the new one after it. Compiles to nothing elsewhere.
//
// ThreadSanitizer also follows the calls on each stack. A function that switches ends on another
// stack than it began on, so that rdma/coroutine/scheduler.cc, where all such functions are, is
// compiled without the marks of calls (CMakeLists.txt); its accesses to memory are watched.

namespace rdmacc {

class FiberSwitch {
 public:
#if defined(__SANITIZE_ADDRESS__)
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
#elif defined(__SANITIZE_THREAD__)
  FiberSwitch() = default;
  FiberSwitch(const FiberSwitch&) = delete;
  FiberSwitch& operator=(const FiberSwitch&) = delete;
  ~FiberSwitch() {
    if (owned_) __tsan_destroy_fiber(fiber_);
  }
  // A coroutine's; a thread's own stack has none to set.
  void set_stack(const void*, size_t) {
    if (fiber_ == nullptr) fiber_ = __tsan_create_fiber(0);
    owned_ = true;
  }
  void leave(const FiberSwitch& to) {
    if (!owned_) fiber_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to.fiber_, 0);
  }
  void leave_for_good(const FiberSwitch& to) { leave(to); }
  void arrive(FiberSwitch*) {}

 private:
  void* fiber_ = nullptr;
  bool owned_ = false;
#else
  void set_stack(const void*, size_t) {}
  void leave(const FiberSwitch&) {}
  void leave_for_good(const FiberSwitch&) {}
  void arrive(FiberSwitch*) {}
#endif
};

}  // namespace rdmacc
