#pragma once
#include <sys/mman.h>

#include <array>
#include <memory_resource>
#include <mutex>
#include <new>
#include <vector>

namespace rdmacc {

// Memory for sets that grow by doubling. What is large comes in whole huge pages, where the system
// has some: a transaction of a million rows then waits for a few hundred page faults and not for a
// hundred thousand. The last few of a size are kept for the next such transaction, which the system
// need not give pages of zeros.
class LargeBlocks final : public std::pmr::memory_resource {
 public:
  static LargeBlocks* get() {
    static auto* const blocks = new LargeBlocks;  // for whatever is destroyed last
    return blocks;
  }

 private:
  static constexpr size_t kHugePageBytes = 2u << 20;

  static constexpr size_t kKeptBytesMax = 64u << 20;  // of a process
  static constexpr size_t kKeptMax = 16;

  static bool is_large(size_t bytes) { return bytes >= kHugePageBytes; }
  void* take_kept(size_t bytes) {
    const std::scoped_lock lock(mutex_);
    for (Kept& kept : kept_) {
      if (kept.bytes != bytes) continue;
      kept_bytes_ -= bytes;
      kept.bytes = 0;
      return kept.memory;
    }
    return nullptr;
  }
  bool keep(void* memory, size_t bytes) {
    const std::scoped_lock lock(mutex_);
    for (Kept& kept : kept_) {
      if (kept.bytes != 0 || bytes > kKeptBytesMax - kept_bytes_) continue;
      kept_bytes_ += bytes;
      kept = {memory, bytes};
      return true;
    }
    return false;
  }
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (!is_large(bytes)) return ::operator new(bytes, std::align_val_t(alignment));
    if (void* kept = take_kept(bytes)) return kept;
    void* memory = ::operator new(bytes, std::align_val_t(kHugePageBytes));
    madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without huge pages, small ones do
    return memory;
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    if (is_large(bytes) && keep(memory, bytes)) return;
    ::operator delete(memory, std::align_val_t(is_large(bytes) ? kHugePageBytes : alignment));
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  struct Kept {
    void* memory = nullptr;
    size_t bytes = 0;  // 0: none
  };
  std::mutex mutex_;
  std::array<Kept, kKeptMax> kept_;
  size_t kept_bytes_ = 0;
};

// For a list that a transaction of many rows makes as long as itself.
template <typename T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <typename Other>
  LargeAllocator(const LargeAllocator<Other>&) {}
  T* allocate(size_t count) {
    return static_cast<T*>(LargeBlocks::get()->allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* memory, size_t count) {
    LargeBlocks::get()->deallocate(memory, count * sizeof(T), alignof(T));
  }
  bool operator==(const LargeAllocator&) const = default;
};
template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace rdmacc
