#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/storage/key_hash.h"
#include "engine/txn/access.h"

// What a transaction knows of each key that it has touched: what the engine had, and its own
// writes on top of that, tagged by command and savepoint level. The private write set.

namespace rdmacc {

struct OwnVersion {
  uint32_t command = 0;
  uint32_t level = 0;
  bool deleted = false;
  std::string row;
};

struct KeyState {
  TableId table = kNoTable;
  std::string key;
  uint64_t hash = 0;

  // The engine's part: kUnknown until it was looked up.
  enum class Base : uint8_t { kUnknown, kExists, kAbsent, kUnchecked } base = Base::kUnknown;
  Access* tuple = nullptr;  // kExists; kAbsent: the tombstone that said so
  Access* gap = nullptr;    // kAbsent: the gap header that was read, unless a tombstone was
  uint64_t overflow = 0;    // of the tuple: offset of its overflow block, 0 = none
  std::string row;          // kExists
  uint64_t version = 0;     // kExists: stamp

  // Own writes, oldest first.
  std::deque<OwnVersion> own;

  // The newest own write of a command below `visible_before`; nullptr when there is none.
  const OwnVersion* own_before(uint32_t visible_before) const {
    for (auto it = own.rbegin(); it != own.rend(); ++it) {
      if (it->command < visible_before) return &*it;
    }
    return nullptr;
  }
};

// Keys are kept in the order in which they were touched, so that scans and commits are the same
// in every run of one seed.
class KeyStates {
 public:
  KeyState* find(TableId table, std::string_view key) {
    const auto found = index_.find(name(table, key));
    return found == index_.end() ? nullptr : found->second;
  }
  KeyState& touch(TableId table, std::string_view key) {
    KeyState*& state = index_[name(table, key)];
    if (state == nullptr) {
      states_.emplace_back();
      state = &states_.back();
      state->table = table;
      state->key = key;
      state->hash = hash_key(table, key);
    }
    return *state;
  }
  std::deque<KeyState>& all() { return states_; }
  const std::deque<KeyState>& all() const { return states_; }

 private:
  static std::string name(TableId table, std::string_view key) {
    std::string text(reinterpret_cast<const char*>(&table), sizeof(table));
    return text.append(key);
  }
  std::unordered_map<std::string, KeyState*> index_;
  std::deque<KeyState> states_;
};

}  // namespace rdmacc
