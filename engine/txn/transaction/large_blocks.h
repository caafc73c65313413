#pragma once
#include <array>
#include <memory_resource>
#include <mutex>
#include <new>

namespace rdmacc {

// Memory for sets that grow by doubling. The last few large blocks of a size are kept for the next
// such transaction, which the system need not give pages of zeros. Huge pages are not asked for:
// they save 0.2 ms a megabyte where the system has some at hand, and cost 2 ms where a virtual
// machine has given free ones back to its host, which it does after two seconds.
class LargeBlocks final : public std::pmr::memory_resource {
 public:
  static LargeBlocks* get() {
    static auto* const blocks = new LargeBlocks;  // for whatever is destroyed last
    return blocks;
  }

 private:
  static constexpr size_t kLargeBytes = 2u << 20;
  static constexpr size_t kKeptBytesMax = 64u << 20;  // of a process
  static constexpr size_t kKeptMax = 16;

  static bool is_large(size_t bytes) { return bytes >= kLargeBytes; }
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
    if (is_large(bytes)) {
      if (void* kept = take_kept(bytes)) return kept;
    }
    return ::operator new(bytes, std::align_val_t(alignment));
  }
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override {
    if (is_large(bytes) && keep(memory, bytes)) return;
    ::operator delete(memory, std::align_val_t(alignment));
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

}  // namespace rdmacc
