#pragma once
#include <span>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/rule/key_state.h"

namespace rdmacc {

// So many keys at a time: what is known of them beside their states is on the stack.
constexpr size_t kKeysAtOnce = 16;

// What becomes of the first look at some keys.
struct FirstLookOut {
  // Memory for the rows of all keys, whole records of them, of which those that are found take what
  // they are long, from its beginning; it moves on. nullptr: the context's arena is used.
  std::byte* room = nullptr;
  // Keys that exist, and whose row is in the room. Of others their states have to be asked.
  size_t plain = 0;
};

// The first look at keys of one table, which nearly always is the last: where the location cache
// says, or at the entry of the key's home bucket, which is read without its gap header. A key that
// is found needs its record and nothing else (docs/sequences.md §2.2). Each key brings an empty
// access, and is kUnknown. It becomes kExists with its row, or kAbsent: by a tombstone, or by a
// record that came after the transaction's timestamp; other absences are the walk's to tell. Those
// stay kUnknown with an empty access, for the walk that looks at their gap headers, too, or say why
// they have `lost`; then those that were not read yet stay so. Errors as find_keys(); whatever is
// locked then is in the accesses.
Status look_first(StageContext& context, CachedTable& table, std::span<KeyState* const> keys,
                  FirstLookOut& out);

// Of a key that exists: the record that its row stands in.
inline std::string_view record_of(const KeyState& state) {
  const size_t before = kKeyLengthBytes + state.key.size();
  return {state.row.data() - before, before + state.row.size()};
}

}  // namespace rdmacc
