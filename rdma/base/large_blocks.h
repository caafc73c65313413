#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <memory_resource>
#include <mutex>
#include <new>
#include <vector>

namespace rdmacc {

// Memory for sets that grow by doubling. What is large comes in whole huge pages, where the system
// has some: a transaction of a million rows then waits for a few hundred page faults and not for a
// hundred thousand. What is given back is kept for the next such transaction, which the system need
// not give pages of zeros: some megabytes as they are, and of what is more the system may take the
// pages back when it wants memory (MADV_FREE). Where it promises no more memory than it has, what
// is kept would be missing to others: then it is the few megabytes alone. What has been kept for
// longest makes room.
class LargeBlocks final : public std::pmr::memory_resource {
 public:
  static LargeBlocks* get() {
    static auto* const blocks = new LargeBlocks;  // for whatever is destroyed last
    return blocks;
  }
  LargeBlocks() = default;
  ~LargeBlocks() override {
    for (const Kept& kept : kept_) {
      if (kept.bytes != 0) free_large(kept.memory);
    }
  }
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  // So much is taken for a block of so many bytes: blocks of nearly a size can be used for each
  // other. The rest of it has no pages before it is written to.
  static constexpr size_t size_taken(size_t bytes) {
    constexpr int kStepsOfDoubling = 3;  // as a power of 2
    const size_t step = std::bit_floor(bytes) >> kStepsOfDoubling;
    return round_up(bytes, std::max(step, kHugePageBytes));
  }

  // Of a process: bytes of kept blocks as they are, of all of them, and how many.
  static constexpr size_t kWholeBytesMax = 64u << 20, kKeptBytesMax = 1u << 30, kKeptMax = 64;
  size_t kept_bytes() {
    const std::scoped_lock lock(mutex_);
    return kept_bytes_;
  }

  // (vm.overcommit_memory)
  static bool system_promises_more_memory() {
    constexpr int kNever = 2;
    static const bool promises = [] {
      int mode = kNever;
      std::ifstream("/proc/sys/vm/overcommit_memory") >> mode;
      return mode != kNever;
    }();
    return promises;
  }

 private:
  static constexpr size_t kHugePageBytes = 2u << 20;

  static constexpr size_t round_up(size_t bytes, size_t step) {
    return (bytes + step - 1) / step * step;
  }
  static bool is_large(size_t bytes) { return bytes >= kHugePageBytes; }
  struct Kept {
    void* memory = nullptr;  // nullptr: none
    size_t bytes = 0;
    uint64_t number = 0;  // the later, the larger
    bool whole = false;   // not lazily freed
  };
  static void free_large(void* memory) {
    ::operator delete(memory, std::align_val_t(kHugePageBytes));
  }
  void forget(Kept& kept) {
    kept_bytes_ -= kept.bytes;
    if (kept.whole) whole_bytes_ -= kept.bytes;
    kept = {};
  }
  void* take_kept(size_t bytes) {
    const std::scoped_lock lock(mutex_);
    for (Kept& kept : kept_) {
      if (kept.bytes != bytes) continue;
      void* const memory = kept.memory;
      forget(kept);
      return memory;
    }
    return nullptr;
  }
  // Room for one block more of so many bytes.
  Kept& make_room(size_t bytes) {
    const auto unused = [this] { return std::ranges::find(kept_, nullptr, &Kept::memory); };
    const auto age = [](const Kept& kept) {
      return kept.memory == nullptr ? UINT64_MAX : kept.number;
    };
    while (bytes > kKeptBytesMax - kept_bytes_ || unused() == kept_.end()) {
      Kept& oldest = *std::ranges::min_element(kept_, {}, age);
      free_large(oldest.memory);
      forget(oldest);
    }
    return *unused();
  }
  bool keep(void* memory, size_t bytes) {
    if (bytes > kKeptBytesMax) return false;
    const std::scoped_lock lock(mutex_);
    const bool whole = whole_bytes_ + bytes <= kWholeBytesMax;
    if (!whole && !system_promises_more_memory()) return false;
    if (!whole && madvise(memory, bytes, MADV_FREE) != 0) return false;
    make_room(bytes) = {memory, bytes, ++number_, whole};
    kept_bytes_ += bytes;
    if (whole) whole_bytes_ += bytes;
    return true;
  }
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (!is_large(bytes)) return ::operator new(bytes, std::align_val_t(alignment));
    const size_t taken = size_taken(bytes);
    if (void* kept = take_kept(taken)) return kept;
    void* memory = ::operator new(taken, std::align_val_t(kHugePageBytes));
    madvise(memory, taken, MADV_HUGEPAGE);  // a wish: without huge pages, small ones do
    return memory;
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    if (is_large(bytes) && keep(memory, size_taken(bytes))) return;
    if (is_large(bytes)) return free_large(memory);
    ::operator delete(memory, std::align_val_t(alignment));
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::mutex mutex_;
  std::array<Kept, kKeptMax> kept_;
  size_t kept_bytes_ = 0, whole_bytes_ = 0;
  uint64_t number_ = 0;
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
