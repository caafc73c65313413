#pragma once
#include <boost/context/stack_context.hpp>

#include "rdma/base/base.h"

// Stacks of coroutines: mapped, with a guard page below so that an overflow faults instead of
// corrupting a neighbour, and kept for reuse per thread, because the simulator makes and drops
// thousands of schedulers and a fresh stack costs a system call and page faults.

namespace rdmacc {

// Where a coroutine's stack lies; the sanitizer's fiber annotations need it.
struct StackBounds {
  const void* bottom = nullptr;
  size_t bytes = 0;
};

// Boost.Context's stack allocator concept. Writes the bounds of what it hands out to `bounds`,
// which outlives the coroutine.
class PooledStack {
 public:
  PooledStack(size_t bytes, StackBounds* bounds) : bytes_(bytes), bounds_(bounds) {}

  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& context) noexcept;

 private:
  size_t bytes_;
  StackBounds* bounds_;
};

}  // namespace rdmacc
