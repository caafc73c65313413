#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/rule/record_bytes.h"

// Finding keys and reading their records by the protocol: the Read stage, or, under two-phase
// locking, the Lock stage of a read. Location cache, else root array, bucket and chain; then the
// candidate's record under the protocol's rule; an absent key is a protocol read of its gap header.

namespace rdmacc {

struct KeyWork {
  enum class Mode : uint8_t {
    kRead,     // the record, or its absence
    kGapOnly,  // just which gap header guards the key: neither read nor locked
  };
  static KeyWork of(TableId table, uint64_t hash, std::string_view key, Mode mode = Mode::kRead) {
    KeyWork work;
    work.table = table;
    work.hash = hash;
    work.key = key;
    work.mode = mode;
    return work;
  }

  // In:
  TableId table = kNoTable;
  uint64_t hash = 0;
  std::string_view key;
  Mode mode = Mode::kRead;
  bool looked = false;  // in vain, by look_first()
  // Out:
  enum class Result : uint8_t { kPending, kFound, kMissing, kAborted } result = Result::kPending;
  AbortReason reason = AbortReason::kNone;
  // kFound: the record. kMissing: not null when the key is absent by a tombstone, or by a record
  // that came after the transaction's timestamp; no gap header was read then.
  Access access;
  uint64_t overflow = 0;    // offset of its overflow block, 0 = none
  std::string_view record;  // [key length][key][row], in the context's arena
  Access gap;               // header not null: a gap header was read or locked on the way
};

// Works on all keys in common rounds. Returns an error for cancellation, dead nodes and dropped
// tables; conflicts are in each key's `result`. Whatever was locked is in `access` and `gap`, also
// after an error.
Status find_keys(StageContext& context, std::span<KeyWork> keys);

}  // namespace rdmacc
