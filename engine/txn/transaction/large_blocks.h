#pragma once
#include <sys/mman.h>

#include <memory_resource>
#include <new>

namespace rdmacc {

// Memory for sets that grow by doubling. What is large comes in whole huge pages, where the system
// has some: a transaction of a million rows then waits for a few hundred page faults and not for a
// hundred thousand.
class LargeBlocks final : public std::pmr::memory_resource {
 public:
  static LargeBlocks* get() {
    static auto* const blocks = new LargeBlocks;  // for whatever is destroyed last
    return blocks;
  }

 private:
  static constexpr size_t kHugePageBytes = 2u << 20;

  static bool is_large(size_t bytes) { return bytes >= kHugePageBytes; }
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (!is_large(bytes)) return ::operator new(bytes, std::align_val_t(alignment));
    void* memory = ::operator new(bytes, std::align_val_t(kHugePageBytes));
    madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without huge pages, small ones do
    return memory;
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    ::operator delete(memory, std::align_val_t(is_large(bytes) ? kHugePageBytes : alignment));
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace rdmacc
