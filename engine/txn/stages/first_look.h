#pragma once
#include <span>
#include <string_view>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/rule/access.h"

namespace rdmacc {

// A key at a first look. kMissing: absent by a tombstone, or by a record that came after the
// transaction's timestamp; other absences are the walk's to tell.
struct SoughtKey {
  uint64_t hash;
  std::string_view key;
  Access* access;  // empty; has what was read and locked afterwards
  // Out:
  enum class Result : uint8_t { kOpen, kFound, kMissing, kAborted } result = Result::kOpen;
  AbortReason reason = AbortReason::kNone;
  bool in_room = false;          // the record is in the caller's room, else in the context's arena
  uint64_t overflow = 0;         // offset of the record's overflow block, 0 = none
  std::string_view record = {};  // kFound: [key length][key][row]
};

// So many keys at a time: what is known of them is on the stack.
constexpr size_t kKeysAtOnce = 16;

// The first look at keys of one table, which nearly always is the last: where the location cache
// says, or at the entry of the key's home bucket, which is read without its gap header. A key that
// is found needs its record and nothing else (docs/sequences.md §2.2). The others stay kOpen with
// an empty access, for the walk that looks at their gap headers, too; when one aborts, those that
// were not read yet do. Errors as find_keys(); whatever is locked then is in the accesses.
//
// `room`: memory for the records of all keys, of which those that are found take what they are
// long, from its beginning; it moves on. nullptr: the context's arena is used.
Status look_first(StageContext& context, CachedTable& table, std::span<SoughtKey> looks,
                  std::byte*& room);

}  // namespace rdmacc
