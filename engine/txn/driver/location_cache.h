#pragma once
#include <memory>

#include "engine/storage/layout/hash_index.h"

namespace rdmacc {

// Where a worker last found a key on its node (DrTM §5.3): direct-mapped by hash, so bounded and
// never searched, and 8 bytes a place, as an index entry has them, so that the second-level cache
// has room for it. An answer is a guess: key, table and incarnation are checked in the header that
// is read there, and a wrong one costs one round. Its memory comes with the first key: a session
// that ends soon, or finds keys in place, does without.
class LocationCache {
 public:
  explicit LocationCache(uint32_t entries) : entries_(entries) {}

  // Offset of the key's header on its node; 0: not known.
  uint64_t find(uint64_t hash) const {
    if (slots_ == nullptr) return 0;
    const uint64_t entry = slots_[slot_of(hash)];
    return entry_tag(entry) == tag_of(hash) ? entry_offset(entry) : 0;
  }
  void put(uint64_t hash, uint64_t offset) {
    if (slots_ == nullptr) [[unlikely]] {
      if (entries_ == 0) return;
      slots_ = std::make_unique<uint64_t[]>(entries_);
    }
    slots_[slot_of(hash)] = make_entry(hash, offset);
  }
  void forget(uint64_t hash) {
    if (find(hash) != 0) slots_[slot_of(hash)] = 0;
  }
  void forget_all() { slots_.reset(); }
  // For a find() that is soon to come.
  [[gnu::always_inline]] void prefetch(uint64_t hash) const {
    if (slots_ != nullptr) __builtin_prefetch(&slots_[slot_of(hash)]);
  }

 private:
  // The tag has none of the 32 bits that choose the place.
  size_t slot_of(uint64_t hash) const {
    return static_cast<size_t>((hash & 0xFFFF'FFFF) * entries_ >> 32);
  }
  const uint64_t entries_;
  std::unique_ptr<uint64_t[]> slots_;  // entries; 0: empty
};

}  // namespace rdmacc
