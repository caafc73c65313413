#pragma once
#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/driver/driver.h"

// What the protocols share whose versions have leases: SUNDIAL, TICTOC and MAAT.

namespace rdmacc {

// In sundial.cc: reading a version; locking a header and then its lease; extending the lease of
// what was read to the commit's time; what a CAS of the lease's word means for the access; whether
// both are locked; the commit time that follows from an access; whether a lease lasts until then.
Step read_leased(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step read_leased_gap(const Header& before, const Header& after, const TxnStamps& txn);
Step lock_leased(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step renew_lease(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
HeldLease note_lease(uint64_t word, uint64_t expected, uint64_t desired);
bool locked_with_lease(const Access& access);
uint64_t behind_leases(const Access& access);
bool lease_lasts(const Access& access, const TxnStamps& txn);

// To the commit's time, from the word as it was seen, unless it lasts until then.
inline Step extend_lease(uint64_t word, const TxnStamps& txn) {
  if (sundial_rts_bound(word) >= txn.commit_tts) return Step::done();
  return Step::cas(kPostRead, kOffsetOfSundial, word, sundial_renewed(word, txn.commit_tts));
}

// In tictoc.cc: a lock that tells where the lease ends, and a renewal that believes it.
Step lock_telling_end(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step renew_or_trust_end(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);

// OCC's.
inline Step lock_early_leased(const Access& access, const HeaderSnapshot* seen,
                              const TxnStamps& txn) {
  return if_unchanged(take_early_lock(access, seen, txn), access, seen);
}

// Commit in place, and with the lease's word.
constexpr Effect kLeasedEffects[] = {Effect::kStamp,  Effect::kLength,  Effect::kIdentity,
                                     Effect::kRecord, Effect::kEntries, Effect::kLease,
                                     Effect::kUnlock};

// The rules of a protocol whose versions have leases, but for these three.
constexpr ProtocolRules leased_rules(Protocol protocol, StageRule read, StageRule lock,
                                     StageRule validate) {
  return {
      .protocol = protocol,
      .stages = kCommonStages | static_cast<uint16_t>(Stage::kRead) |
                static_cast<uint16_t>(Stage::kRenew),
      .validation = Stage::kRenew,
      .strictly_serializable = false,
      .read = read,
      .read_gap = read_leased_gap,
      .lock = lock,
      .lock_early = driven_by<lock_early_leased>,
      .validate = validate,
      .note_cas = note_lease,
      .locked_whole = locked_with_lease,
      .commits_at_least = behind_leases,
      .holds_until_commit = lease_lasts,
      .effects = kLeasedEffects,
  };
}

}  // namespace rdmacc
