#pragma once
#include <vector>

#include "engine/storage/tuple.h"

namespace rdmacc {

// Where a worker last found a key (DrTM §5.3): direct-mapped by hash, so bounded and never
// searched. An answer is a guess: key, table and incarnation are checked in the header that is
// read there, and a wrong one costs one round.
class LocationCache {
 public:
  struct Location {
    GlobalAddress header;
    uint32_t incarnation = 0;
  };

  explicit LocationCache(uint32_t entries) : slots_(entries) {}

  const Location* find(TableId table, uint64_t hash) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[hash % slots_.size()];
    return slot.table == table && slot.hash == hash ? &slot.location : nullptr;
  }
  void put(TableId table, uint64_t hash, Location location) {
    if (!slots_.empty()) slots_[hash % slots_.size()] = Slot{hash, location, table};
  }
  void forget(TableId table, uint64_t hash) {
    if (find(table, hash) != nullptr) slots_[hash % slots_.size()] = Slot{};
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    Location location;
    TableId table = kNoTable;
  };
  std::vector<Slot> slots_;
};

}  // namespace rdmacc
