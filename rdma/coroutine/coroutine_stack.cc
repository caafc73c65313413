#include "rdma/coroutine/coroutine_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "rdma/base/check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace rdmacc {
namespace {

constexpr size_t kPooledStacksMax = 512;  // per thread
// Stacks of one size begin at the same place of their pages, and the first-level cache keeps only a
// few lines of one place. So each begins some lines lower than the one before.
constexpr size_t kStepBytes = 5 * kCacheLineBytes;
thread_local size_t stacks_given = 0;

struct FreeStack {
  std::byte* base;  // of the mapping: the guard page
  size_t mapped_bytes;
};

// Set when the thread's pool is gone; what is freed after that is unmapped at once.
thread_local bool pool_gone = false;

struct StackPool {
  std::vector<FreeStack> free;
  ~StackPool() {
    for (const FreeStack& stack : free) munmap(stack.base, stack.mapped_bytes);
    pool_gone = true;
  }
};
thread_local StackPool pool;

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

boost::context::stack_context PooledStack::allocate() {
  const size_t page = page_bytes();
  const size_t mapped_bytes = ((bytes_ + page - 1) / page + 1) * page;
  std::byte* base = nullptr;
  if (!pool_gone && !pool.free.empty() && pool.free.back().mapped_bytes == mapped_bytes) {
    base = pool.free.back().base;
    pool.free.pop_back();
  } else {
    void* mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    // The number of coroutines is bounded, so running out here is a wrong configuration.
    CHECK(mapped != MAP_FAILED);
    CHECK(mprotect(mapped, page, PROT_NONE) == 0);
    base = static_cast<std::byte*>(mapped);
  }
  boost::context::stack_context context;
  const size_t lower = stacks_given++ * kStepBytes % page;
  context.size = mapped_bytes - page - lower;
  context.sp = base + mapped_bytes - lower;
  bounds_->bottom = base + page;
  bounds_->bytes = context.size;
  return context;
}

void PooledStack::deallocate(boost::context::stack_context& context) noexcept {
  const size_t page = page_bytes();
  std::byte* base = static_cast<std::byte*>(context.sp) - context.size - page;
  const size_t mapped_bytes = (context.size + page - 1) / page * page + page;
#ifdef __SANITIZE_ADDRESS__
  // Frames that were unwound leave their red zones behind.
  __asan_unpoison_memory_region(base + page, context.size);
#endif
  if (!pool_gone && pool.free.size() < kPooledStacksMax) {
    pool.free.push_back(FreeStack{base, mapped_bytes});
  } else {
    munmap(base, mapped_bytes);
  }
}

}  // namespace rdmacc
