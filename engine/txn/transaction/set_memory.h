#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory_resource>
#include <new>
#include <span>
#include <string_view>

#include "engine/storage/layout/short_bytes.h"
#include "rdma/base/large_blocks.h"

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
    char* copy = reinterpret_cast<char*>(room(bytes.size()));
    copy_bytes(copy, bytes.data(), bytes.size());
    take_room(room_ + round_up(bytes.size()));
    return {copy, bytes.size()};
  }
  // Room for so much, 8-byte aligned, of which take_room() takes what is in front of `end`.
  std::byte* room(size_t bytes) {
    if (static_cast<size_t>(room_end_ - room_) < round_up(bytes)) [[unlikely]] {
      more_room(round_up(bytes));
    }
    return room_;
  }
  void take_room(std::byte* end) { room_ = end; }

  // 8-byte aligned.
  void* take(size_t bytes) {
    if (bytes > kBlockBytesMax) return take_large(bytes);
    const size_t kind = kind_of(bytes);
    Free* block = free_[kind];
    if (block == nullptr) return lasting_.allocate(bytes_of(kind), 8);
    free_[kind] = block->next;
    return block;
  }
  void give_back(void* memory, size_t bytes) {
    if (bytes > kBlockBytesMax) return give_back_large(memory);
    free_[kind_of(bytes)] = new (memory) Free{free_[kind_of(bytes)]};
  }

 private:
  static constexpr size_t kBlockBytesMin = 32, kBlockBytesMax = 4096;
  static constexpr size_t kFirstDoubling = std::bit_width(kBlockBytesMin) - 1;
  static constexpr size_t kRoomBytesMin = 1024, kRoomBytesMax = 64 * 1024;

  struct Free {
    Free* next;
  };
  struct Large {
    Large *before, *next;
    size_t bytes;
  };

  static constexpr size_t round_up(size_t bytes) { return (bytes + 7) / 8 * 8; }
  // What is left of the last piece is lost: the next one is larger.
  [[gnu::noinline]] void more_room(size_t bytes) {
    const size_t piece = std::max(bytes, next_room_bytes_);
    next_room_bytes_ = std::min(2 * piece, kRoomBytesMax);
    room_ = static_cast<std::byte*>(lasting_.allocate(piece, 8));
    room_end_ = room_ + piece;
  }
  // Four sizes in each doubling: 32, 40, 48, 56, 64, 80, ...
  static constexpr size_t kind_of(size_t bytes) {
    if (bytes <= kBlockBytesMin) return 0;
    const auto doubling = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;
    return 4 * (doubling - kFirstDoubling) + ((bytes - 1) >> (doubling - 2)) % 4 + 1;
  }
  static constexpr size_t bytes_of(size_t kind) {
    if (kind == 0) return kBlockBytesMin;
    return (5 + (kind - 1) % 4) << ((kind - 1) / 4 + kFirstDoubling - 2);
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
  std::byte* room_ = nullptr;
  std::byte* room_end_ = nullptr;
  size_t next_room_bytes_ = kRoomBytesMin;
  std::array<Free*, 4 * (std::bit_width(kBlockBytesMax / kBlockBytesMin) - 1) + 1> free_{};
  Large* large_ = nullptr;
};

}  // namespace rdmacc
