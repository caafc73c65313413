#pragma once
#include <deque>
#include <list>
#include <memory_resource>
#include <string>
#include <string_view>

#include "engine/storage/key_hash.h"
#include "engine/txn/access.h"
#include "engine/txn/small_index.h"

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
  // `memory` is given back when the transaction ends, not before.
  explicit KeyState(std::pmr::memory_resource* memory) : key(memory), row(memory) {}
  KeyState(const KeyState&) = delete;
  KeyState& operator=(const KeyState&) = delete;

  TableId table = kNoTable;
  std::pmr::string key;
  uint64_t hash = 0;
  KeyState* same_hash = nullptr;  // the next one with this hash
  bool asked = false;             // looked up right now

  // The engine's part: kUnknown until it was looked up.
  enum class Base : uint8_t { kUnknown, kExists, kAbsent, kUnchecked } base = Base::kUnknown;
  Access* tuple = nullptr;  // kExists; kAbsent: the tombstone that said so
  Access* gap = nullptr;    // kAbsent: the gap header that was read, unless a tombstone was
  uint64_t overflow = 0;    // of the tuple: offset of its overflow block, 0 = none
  std::pmr::string row;     // kExists
  uint64_t version = 0;     // kExists: stamp

  // Own writes, oldest first. What is rolled back must give its memory back at once.
  std::list<OwnVersion> own;

  // What they come to; nullptr when there is nothing to write: none, or inserted and deleted again.
  const OwnVersion* to_write() const {
    if (own.empty() || (base != Base::kExists && own.back().deleted)) return nullptr;
    return &own.back();
  }
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
  explicit KeyStates(std::pmr::memory_resource* memory)
      : memory_(memory), index_(memory), states_(memory) {}

  KeyState* find(TableId table, std::string_view key) {
    return among(index_.find(hash_key(table, key)), table, key);
  }
  KeyState& touch(TableId table, std::string_view key) {
    return touch(table, key, hash_key(table, key));
  }
  KeyState& touch(TableId table, std::string_view key, uint64_t hash) {
    KeyState* first = index_.find(hash);
    if (KeyState* known = among(first, table, key)) return *known;
    KeyState& state = states_.emplace_back(memory_);
    state.table = table;
    state.key = key;
    state.hash = hash;
    state.same_hash = first;
    index_.put(hash, &state);
    return state;
  }
  // Hands own writes of levels >= `level` to the level below.
  void release(uint32_t level) {
    for (KeyState& state : states_) {
      for (auto it = state.own.rbegin(); it != state.own.rend() && it->level >= level; ++it) {
        it->level = level - 1;
      }
    }
  }
  std::pmr::deque<KeyState>& all() { return states_; }
  const std::pmr::deque<KeyState>& all() const { return states_; }

 private:
  static KeyState* among(KeyState* first, TableId table, std::string_view key) {
    while (first != nullptr && (first->table != table || first->key != key)) {
      first = first->same_hash;
    }
    return first;
  }
  std::pmr::memory_resource* const memory_;
  SmallIndex<KeyState> index_;  // by hash
  std::pmr::deque<KeyState> states_;
};

}  // namespace rdmacc
