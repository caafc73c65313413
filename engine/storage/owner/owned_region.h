#pragma once
#include <atomic>

#include "engine/storage/layout/tuple.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The owner node's view of its own region: 8-byte loads and stores by the CPU, in an order that
// other processes' one-sided accesses agree with. Words that other processes change by atomics
// (locks) are changed through it only while the node is being opened; later by verbs to itself.
class OwnedRegion {
 public:
  OwnedRegion(std::byte* base, uint64_t bytes, NodeId node)
      : base_(base), bytes_(bytes), node_(node) {
    CHECK(base != nullptr);
  }

  NodeId node() const { return node_; }
  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  GlobalAddress address(uint64_t offset) const { return GlobalAddress::make(node_, offset); }

  uint64_t load(uint64_t offset) const {
    return std::atomic_ref<uint64_t>(*word(offset)).load(std::memory_order_acquire);
  }
  void store(uint64_t offset, uint64_t value) const {
    std::atomic_ref<uint64_t>(*word(offset)).store(value, std::memory_order_release);
  }
  void store_words(uint64_t offset, const uint64_t* words, size_t count) const {
    for (size_t i = 0; i < count; ++i) store(offset + 8 * i, words[i]);
  }
  void load_words(uint64_t offset, uint64_t* words, size_t count) const {
    for (size_t i = 0; i < count; ++i) words[i] = load(offset + 8 * i);
  }
  // A slot that is looked at soon: its header and what follows. Any number will do.
  void prefetch_slot(uint64_t offset) const {
    if (offset >= bytes_) return;
    __builtin_prefetch(base_ + offset);
    __builtin_prefetch(base_ + offset + kCacheLineBytes);
  }
  // Its header alone.
  void prefetch_header(uint64_t offset) const {
    if (offset < bytes_) __builtin_prefetch(base_ + offset);
  }
  void zero(uint64_t offset, uint64_t bytes) const {
    for (uint64_t at = 0; at < bytes; at += 8) store(offset + at, 0);
  }

  Header header(uint64_t offset) const {
    uint64_t words[sizeof(Header) / 8];
    load_words(offset, words, sizeof(Header) / 8);
    Header header;
    std::memcpy(&header, words, sizeof(Header));
    return header;
  }
  uint64_t lock_of(uint64_t header) const { return load(header + kOffsetOfLock); }
  // Makes every copy of the address that is cached anywhere stale.
  void bump_incarnation(uint64_t header, TableId table) const {
    CHECK(header != 0);  // the superblock is no header
    const uint64_t identity = load(header + kOffsetOfIdentity);
    store(header + kOffsetOfIdentity, pack_words(table, static_cast<uint32_t>(identity >> 32) + 1));
  }
  TableId table_of(uint64_t header) const {
    return static_cast<TableId>(load(header + kOffsetOfIdentity));
  }

 private:
  uint64_t* word(uint64_t offset) const {
    CHECK(offset % 8 == 0 && offset + 8 <= bytes_);
    return reinterpret_cast<uint64_t*>(base_ + offset);
  }

  std::byte* const base_;
  const uint64_t bytes_;
  const NodeId node_;
};

// The offset within the region of an address that a record holds.
constexpr uint64_t kLowOffsetMask = (1ull << 48) - 1;

}  // namespace rdmacc
