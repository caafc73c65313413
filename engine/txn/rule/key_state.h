#pragma once
#include <string_view>

#include "engine/txn/rule/access.h"
#include "engine/txn/rule/outcome.h"

namespace rdmacc {

// One own write. Behind it lies the record as the log and the slot will have it, padded with zeros
// to whole words: [key length][key][row], of a delete without a row.
struct OwnVersion {
  OwnVersion* before;  // the write before; nullptr: this is the first
  uint32_t command;
  uint32_t level;
  uint32_t record_bytes, row_bytes;
  bool deleted;

  char* record_at() { return reinterpret_cast<char*>(this + 1); }
  std::string_view record() const {
    return {reinterpret_cast<const char*>(this + 1), record_bytes};
  }
  std::string_view row() const { return record().substr(record_bytes - row_bytes); }
  size_t bytes() const { return sizeof(OwnVersion) + round_up(record_bytes, 8); }
};

// What a transaction knows of a key that it has touched: what the engine had, and its own writes on
// top of that, tagged by command and savepoint level. The first look at a key is told by it what to
// look for, and notes in it what was found. All zeros: nothing is known.
struct KeyState {
  TableId table = kNoTable;
  bool asked = false;         // kUnknown: one of the keys that are looked up right now
  bool locked_early = false;  // before the commit, at savepoint level `lock_level`
  // The engine's part: kUnknown until it was looked up.
  enum class Base : uint8_t { kUnknown, kExists, kAbsent, kUnchecked } base = Base::kUnknown;
  std::string_view key;
  uint64_t hash = 0;
  KeyState* same_hash = nullptr;  // the next one with this hash
  Access* tuple = nullptr;        // kExists; kAbsent: the tombstone that said so
  // kAbsent: the gap header that was read, unless a tombstone was. kExists: that of the scan which
  // has returned the row.
  Access* gap = nullptr;
  uint64_t overflow = 0;  // of the tuple: offset of its overflow block, 0 = none
  std::string_view row;   // kExists
  uint64_t version = 0;   // kExists: stamp
  uint32_t lock_level = 0;
  // Of a first look: why it has lost, and whether the row lies in its caller's room.
  AbortReason lost = AbortReason::kNone;
  bool in_room = false;

  OwnVersion* own = nullptr;  // the newest own write

  // What they come to; nullptr when there is nothing to write: none, or inserted and deleted again.
  const OwnVersion* to_write() const {
    return own != nullptr && own->deleted && base != Base::kExists ? nullptr : own;
  }
  // The newest own write of a command below `visible_before`; nullptr when there is none.
  const OwnVersion* own_before(uint32_t visible_before) const {
    const OwnVersion* seen = own;
    while (seen != nullptr && seen->command >= visible_before) seen = seen->before;
    return seen;
  }
};

}  // namespace rdmacc
