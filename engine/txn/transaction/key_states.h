#pragma once
#include "engine/storage/layout/key_hash.h"
#include "engine/txn/rule/key_state.h"
#include "engine/txn/rule/record_bytes.h"
#include "engine/txn/transaction/set_memory.h"
#include "engine/txn/transaction/small_index.h"
#include "engine/txn/transaction/stable_list.h"
#include "engine/txn/transaction/table_set.h"

namespace rdmacc {

// All keys that a transaction has touched, by their bytes: with its own writes the private write
// set. Keys are kept in the order in which they were touched, so that scans and commits are the
// same in every run of one seed.
class KeyStates {
 public:
  explicit KeyStates(SetMemory& memory)
      : memory_(memory), index_(memory.lasting()), states_(memory.lasting()) {}

  KeyState* find(TableId table, std::string_view key) {
    return find(table, key, hash_key(table, key));
  }
  KeyState* find(TableId table, std::string_view key, uint64_t hash) {
    return among(index_.find(hash), table, key);
  }
  KeyState& touch(TableId table, std::string_view key) {
    return touch(table, key, hash_key(table, key));
  }
  [[gnu::always_inline]] KeyState& touch(TableId table, std::string_view key, uint64_t hash) {
    KeyState*& first = index_.at(hash);
    if (KeyState* known = among(first, table, key)) return *known;
    tables_.add(table);
    KeyState& state = states_.emplace_zero();
    state.table = table;
    state.key = memory_.keep(key);
    state.hash = hash;
    state.same_hash = first;
    first = &state;
    return state;
  }
  // Is there a state of any key of the table?
  bool has_table(TableId table) const { return tables_.has(table); }
  [[gnu::always_inline]] void prefetch(TableId table, std::string_view key) const {
    prefetch(hash_key(table, key));
  }
  [[gnu::always_inline]] void prefetch(uint64_t hash) const { index_.prefetch(hash); }
  void keep_row(KeyState& state, std::string_view row) { state.row = memory_.keep(row); }

  // An own write on top of the others, and back.
  void write(KeyState& state, uint32_t command, uint32_t level, bool deleted,
             std::string_view row) {
    const auto record = static_cast<uint32_t>(record_bytes(state.key.size(), row.size()));
    const auto row_bytes = static_cast<uint32_t>(row.size());
    const OwnVersion version{state.own, command, level, record, row_bytes, deleted};
    OwnVersion* own = new (memory_.take(version.bytes())) OwnVersion(version);
    memset(own->record_at() + round_up(record, 8) - 8, 0, 8);
    put_record(own->record_at(), state.key, row);
    state.own = own;
  }
  void forget_newest(KeyState& state) {
    OwnVersion* newest = state.own;
    state.own = newest->before;
    memory_.give_back(newest, newest->bytes());
  }
  // `row` may be that of the write which it replaces.
  void replace_newest(KeyState& state, std::string_view row) {
    OwnVersion* replaced = state.own;
    write(state, replaced->command, replaced->level, false, row);
    state.own->before = replaced->before;
    memory_.give_back(replaced, replaced->bytes());
  }
  // Hands own writes of levels >= `level` to the level below.
  void release(uint32_t level) {
    for (KeyState& state : states_) {
      for (OwnVersion* own = state.own; own != nullptr && own->level >= level; own = own->before) {
        own->level = level - 1;
      }
      if (state.lock_level >= level) state.lock_level = level - 1;
    }
  }
  StableList<KeyState>& all() { return states_; }
  const StableList<KeyState>& all() const { return states_; }

 private:
  static KeyState* among(KeyState* first, TableId table, std::string_view key) {
    while (first != nullptr && !(first->table == table && is_same(first->key, key))) {
      first = first->same_hash;
    }
    return first;
  }
  static bool is_same(std::string_view one, std::string_view other) {
    return one.size() == other.size() && same_bytes(one.data(), other.data(), one.size());
  }

  SetMemory& memory_;
  TableSet tables_;             // that states are of
  SmallIndex<KeyState> index_;  // by hash
  StableList<KeyState> states_;
};

}  // namespace rdmacc
