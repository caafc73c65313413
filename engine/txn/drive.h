#pragma once
#include <span>

#include "engine/txn/engine_context.h"

// The rule driver: carries a rule out over all records of a stage in rounds. Each record's next
// verbs go into its node's doorbell batch, all doorbells ring, the coroutine yields once, every
// record steps (docs/architecture.md §2).

namespace rdmacc {

// A record under a rule. `access` learns what the rounds find: locks, incarnation.
struct RecordState {
  Access* access = nullptr;
  HeaderSnapshot* snapshot = nullptr;  // registered; allocated by the driver when nullptr
  std::byte* record =
      nullptr;  // registered; where kReadRecord goes, `record_bytes` of it; likewise
  uint32_t record_bytes = 0;
  uint32_t history = 0;  // old versions that the slot has room for
  // Out:
  enum class End : uint8_t { kPending, kDone, kStale, kAbort } end = End::kPending;
  AbortReason reason = AbortReason::kNone;
  bool newly_locked = false;  // this drive's CAS took the lock (the transaction had not held it)
  // The header as the rule accepted it: the post-read if there was one, else the pre-read. For an
  // old version its stamp, length and flags are that version's, and `record` points at its bytes.
  // With kFlagDeleted the key is absent, and the record's bytes are good for nothing but the key.
  Header accepted{};

 private:
  friend class Driver;
  std::byte* version = nullptr;  // registered; head and record of an old version
  bool waiting = false;          // the header's waiter word holds this transaction's ctts
};

// Runs `rule` until every record is done, stale (the header belongs to something else now; if the
// lock was got, access->locked says so) or one aborts (the others then stay pending, but their
// locks are noted). Returns an error only for cancellation, dead nodes and lack of memory;
// conflicts are in `end`.
Status drive(StageContext& context, Rule rule, std::span<RecordState> records);

// Notes in `access` which version a read has accepted.
void note_read(const StageContext& context, const RecordState& record, Access& access);

// The first abort among them as a Status, else stale as kStaleLocation, else ok.
Status outcome_of(std::span<const RecordState> records);

}  // namespace rdmacc
