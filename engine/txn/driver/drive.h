#pragma once
#include <span>
#include <string_view>

#include "engine/txn/driver/engine_context.h"

// The rule driver: carries a rule out over all records of a stage (docs/architecture.md §2).
//
//   posted       in rounds: each record's next verbs go into its node's doorbell batch, all
//                doorbells ring, the coroutine yields once, every record steps
//   in place     record by record: there is nothing to wait for, and what one record needs stays in
//                the nearest cache

namespace rdmacc {

// A record under a rule. `access` learns what the rounds find: locks, incarnation.
struct RecordState {
  Access* access = nullptr;
  // Registered; allocated by the driver when nullptr and it needs one. In place only rules that
  // skip leave it to be looked at.
  HeaderSnapshot* snapshot = nullptr;
  // Registered; where kReadRecord goes, `record_bytes` of it; likewise. Where verbs are posted,
  // the driver has the bytes in front of it, too, for a header: memory_bytes().
  std::byte* record = nullptr;
  uint32_t record_bytes = 0;
  uint32_t history = 0;  // old versions that the slot has room for
  // Out:
  enum class End : uint8_t { kPending, kDone, kStale, kAbort } end = End::kPending;
  AbortReason reason = AbortReason::kNone;
  // This drive's CAS took the lock (the transaction had not held it), or registered it.
  bool newly_locked = false;
  // The header as the rule accepted it: the post-read if there was one, else the pre-read. For an
  // old version its stamp, length and flags are that version's, and `record` points at its bytes.
  // With kFlagDeleted the key is absent, and the record's bytes are good for nothing but the key.
  struct Accepted {
    uint64_t wts = 0;
    uint64_t key_hash = 0;
    uint64_t lease = 0;  // SUNDIAL's word of the pre-read; DRTM's lease
    uint64_t waiter = 0;
    uint32_t length = 0;
    uint32_t flags = 0;
  } accepted;

  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(record), accepted.length};
  }
  static size_t memory_bytes(size_t record_bytes) { return sizeof(Header) + record_bytes; }
  void use_memory(std::byte* memory) { record = memory + sizeof(Header); }

 private:
  friend class DriverBase;
  template <typename>
  friend class Driver;
  uint8_t standing = 0;            // how often in a row the lock's holder has stood still
  bool waiting = false;            // the header's waiter word holds this transaction's ctts
  uint64_t waited_for = 0;         // a holder that has ended
  const Header* latest = nullptr;  // of the snapshot: what the latest rounds have read last
  std::byte* version = nullptr;    // registered; head and record of an old version
};

// Runs `rule` until every record is done, stale (the header belongs to something else now; if the
// lock was got, access->locked says so) or one aborts (the others then stay pending, but their
// locks are noted). Returns an error only for cancellation, dead nodes and lack of memory;
// conflicts are in `end`.
inline Status drive(StageContext& context, const StageRule& rule, std::span<RecordState> records) {
  return rule.drive(context, rule.step, records);
}

// Notes in `access` which version a read has accepted.
inline void note_read(const StageContext& context, const RecordState::Accepted& accepted,
                      Access& access) {
  const bool absent = (accepted.flags & kFlagDeleted) != 0;
  access.read = true;
  access.locked_wts = accepted.wts;
  // Under timestamp ordering an absence is as of the transaction's time, whichever version shows
  // it.
  access.read_wts =
      absent && context.rules.reads_at_ctts ? context.stamps.just_before() : accepted.wts;
  if (!access.lease_locked) access.lease = accepted.lease;
}

// The first abort among them as a Status, else stale as kStaleLocation, else ok.
Status outcome_of(std::span<const RecordState> records);

}  // namespace rdmacc
