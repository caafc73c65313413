#pragma once
#include <array>
#include <bit>
#include <cstring>
#include <memory_resource>
#include <new>
#include <span>
#include <string_view>

#include "engine/txn/transaction/large_blocks.h"

namespace rdmacc {

// The memory of a transaction's read and write sets. What is read stays until the transaction
// ends; what is written may be rolled back before, and its memory is used again at once: by size,
// or, of large rows, by whatever the process needs next. One thread.
class SetMemory {
 public:
  // The sets of a short transaction fit into `first`, which outlives this.
  explicit SetMemory(std::span<std::byte> first)
      : lasting_(first.data(), first.size(), LargeBlocks::get()) {}
  SetMemory() : lasting_(LargeBlocks::get()) {}
  ~SetMemory() {
    while (large_ != nullptr) give_back(large_ + 1, large_->bytes);
  }
  SetMemory(const SetMemory&) = delete;
  SetMemory& operator=(const SetMemory&) = delete;

  std::pmr::memory_resource* lasting() { return &lasting_; }
  std::string_view keep(std::string_view bytes) {
    if (bytes.empty()) return {};
    auto* copy = static_cast<char*>(lasting_.allocate(bytes.size(), 1));
    std::memcpy(copy, bytes.data(), bytes.size());
    return {copy, bytes.size()};
  }

  // 8-byte aligned.
  void* take(size_t bytes) {
    if (bytes > kBlockBytesMax) return take_large(bytes);
    const size_t kind = kind_of(bytes);
    Free* block = free_[kind];
    if (block == nullptr) return lasting_.allocate(kBlockBytesMin << kind, 8);
    free_[kind] = block->next;
    return block;
  }
  void give_back(void* memory, size_t bytes) {
    if (bytes > kBlockBytesMax) return give_back_large(memory);
    free_[kind_of(bytes)] = new (memory) Free{free_[kind_of(bytes)]};
  }

 private:
  static constexpr size_t kBlockBytesMin = 64, kBlockBytesMax = 4096;

  struct Free {
    Free* next;
  };
  struct Large {
    Large *before, *next;
    size_t bytes;
  };

  static size_t kind_of(size_t bytes) {
    return bytes <= kBlockBytesMin ? 0
                                   : static_cast<size_t>(std::bit_width(bytes - 1) -
                                                         std::bit_width(kBlockBytesMin - 1));
  }
  void* take_large(size_t bytes) {
    auto* large = new (::operator new(sizeof(Large) + bytes)) Large{nullptr, large_, bytes};
    if (large_ != nullptr) large_->before = large;
    large_ = large;
    return large + 1;
  }
  void give_back_large(void* memory) {
    Large* large = static_cast<Large*>(memory) - 1;
    (large->before == nullptr ? large_ : large->before->next) = large->next;
    if (large->next != nullptr) large->next->before = large->before;
    ::operator delete(large);
  }

  std::pmr::monotonic_buffer_resource lasting_;
  std::array<Free*, 7> free_{};  // by size: 64 << index
  Large* large_ = nullptr;
};

}  // namespace rdmacc
