#pragma once
#include <array>
#include <boost/container/small_vector.hpp>
#include <vector>

#include "rdma/fabric/fabric.h"

// Registered memory for verbs' local buffers. RegisteredPool belongs to a worker and hands out
// blocks; VerbArena belongs to one transaction (or handler) and bump-allocates from blocks until
// it is reset. One thread each.

namespace rdmacc {

// The one status for registered memory that cannot be had.
inline Status out_of_registered_memory() {
  return Status(Code::kNoSpace, "registered memory is used up");
}

class RegisteredPool {
 public:
  static constexpr size_t kBlockBytes = 16 * 1024;

  explicit RegisteredPool(Endpoint& endpoint) : endpoint_(endpoint) {}
  RegisteredPool(const RegisteredPool&) = delete;
  RegisteredPool& operator=(const RegisteredPool&) = delete;

  // A block of kBlockBytes, or of `bytes` rounded up to a power of two when that is more.
  // nullptr when the fabric has no more.
  std::byte* take(size_t bytes);
  void give_back(std::byte* block, size_t bytes);

 private:
  static constexpr size_t kClasses = 16;  // 16 KB << 15 = 512 MB
  Endpoint& endpoint_;
  std::array<std::vector<std::byte*>, kClasses> free_;
};

class VerbArena {
 public:
  explicit VerbArena(RegisteredPool& pool) : pool_(pool) {}
  ~VerbArena();  // gives every block back
  VerbArena(const VerbArena&) = delete;
  VerbArena& operator=(const VerbArena&) = delete;

  // 8-byte aligned, uninitialised; 64-byte aligned when bytes >= 64. nullptr: pool used up.
  std::byte* allocate(size_t bytes) {
    const size_t alignment = bytes >= kCacheLineBytes ? kCacheLineBytes : 8;
    const size_t start = (used_in_last_ + alignment - 1) & ~(alignment - 1);
    if (start > last_.bytes || bytes > last_.bytes - start) [[unlikely]] {
      return allocate_in_new_block(bytes);
    }
    used_in_last_ = start + bytes;
    allocated_ += bytes;
    return last_.start + start;
  }
  template <typename T>
  T* allocate_array(size_t count) {
    return reinterpret_cast<T*>(allocate(sizeof(T) * count));
  }
  // Gives all blocks but the first back (that one too when it is a large buffer's); no verb may
  // be in flight on them.
  void reset() {
    if (blocks_.size() != 1 || last_.bytes != RegisteredPool::kBlockBytes) return reset_blocks();
    used_in_last_ = 0;
    allocated_ = 0;
  }
  size_t allocated_bytes() const { return allocated_; }

 private:
  struct Block {
    std::byte* start = nullptr;
    size_t bytes = 0;
  };
  std::byte* allocate_in_new_block(size_t bytes);
  void reset_blocks();

  RegisteredPool& pool_;
  boost::container::small_vector<Block, 4> blocks_;
  Block last_;  // of them
  size_t used_in_last_ = 0;
  size_t allocated_ = 0;
};

}  // namespace rdmacc
