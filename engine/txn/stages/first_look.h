#pragma once
#include <span>
#include <string_view>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/rule/access.h"

namespace rdmacc {

// A key at a first look. kMissing: absent by a tombstone, or by a record that came after the
// transaction's timestamp; other absences are the walk's to tell.
struct SoughtKey {
  TableId table;
  uint64_t hash;
  std::string_view key;
  Access* access;  // empty; has what was read and locked afterwards
  // Out:
  enum class Result : uint8_t { kOpen, kFound, kMissing, kAborted } result = Result::kOpen;
  AbortReason reason = AbortReason::kNone;
  uint64_t overflow = 0;         // offset of the record's overflow block, 0 = none
  std::string_view record = {};  // kFound: [key length][key][row], in the context's arena
};

// The first look at keys, which nearly always is the last: where the location cache says, or at the
// entry of the key's home bucket, which is read without its gap header. A key that is found needs
// its record and nothing else (docs/sequences.md §2.2). The others stay kOpen with an empty access,
// for the walk that looks at their gap headers, too; when one aborts, those that were not read yet
// do. Errors as find_keys(); whatever is locked then is in the accesses.
Status look_first(StageContext& context, std::span<SoughtKey> looks);

}  // namespace rdmacc
