#pragma once
#include "engine/txn/access.h"
#include "engine/txn/outcome.h"
#include "engine/txn/stage.h"

// A conditional stage as a rule: a pure function from what was last seen of one record to what to
// try next. The driver (drive.h) turns its answer into verbs, wherever it runs: at the coordinator
// over the wire or in the owner's RPC handler. A protocol is a ProtocolRules in one file.

namespace rdmacc {

// What one round saw of a record. The headers are images in registered memory.
struct Look {
  Header first;       // loaded in ascending order, before the record
  Header last;        // loaded in descending order, after the record
  uint64_t cas_seen;  // what the CAS found
};

// The verbs of one round on one record; always posted in this order.
enum StepVerbs : uint8_t {
  kNoVerbs = 0,
  kCasLock = 1,  // CAS on the lock word, expected -> desired
  kFirstLook = 2,
  kReadRecord = 4,  // the record (or, for a gap, its buckets)
  kLastLook = 8,
};

enum class Verdict : uint8_t {
  kTry,  // post `verbs`
  kDone,
  kLookAgain,  // post `verbs` again after a pause
  kAbort,
};

struct Step {
  Verdict verdict = Verdict::kAbort;
  uint8_t verbs = kNoVerbs;
  AbortReason reason = AbortReason::kNone;
  uint64_t expected = 0, desired = 0;  // of the CAS

  static Step attempt(int verbs) { return Step{Verdict::kTry, static_cast<uint8_t>(verbs)}; }
  static Step cas(int verbs, uint64_t expected, uint64_t desired) {
    return Step{Verdict::kTry, static_cast<uint8_t>(verbs | kCasLock), AbortReason::kNone, expected,
                desired};
  }
  static Step done() { return Step{Verdict::kDone}; }
  static Step again(int verbs) { return Step{Verdict::kLookAgain, static_cast<uint8_t>(verbs)}; }
  static Step abort(AbortReason reason) { return Step{Verdict::kAbort, kNoVerbs, reason}; }
};

// What a rule may know of its transaction.
struct TxnStamps {
  uint64_t ctts = 0;  // unique per attempt; what its lock words hold
};

// After a CAS 0 -> ctts: does this attempt hold the lock? A ctts is never used by two attempts, so
// finding our own means yes: two operations of one batch can meet on one gap header.
inline bool holds_lock(const Access& access, const Look& seen, const TxnStamps& txn) {
  return access.locked || seen.cas_seen == 0 || seen.cas_seen == txn.ctts;
}

// `seen` is nullptr before the first round. The identity of the header was checked already.
using Rule = Step (*)(const Access& access, const Look* seen, const TxnStamps& txn);

struct ProtocolRules {
  Protocol protocol;
  uint16_t stages;  // bits of Stage that it has
  // Two-phase locking: a read is the Lock stage, and there is nothing to validate.
  bool locks_what_it_reads;
  // One record read and nothing else commits without validation.
  bool single_read_is_atomic;
  Rule read;      // nullptr with locks_what_it_reads
  Rule lock;      // with kReadRecord when it is also the read
  Rule validate;  // nullptr when it validates nothing
};

}  // namespace rdmacc
