#pragma once
#include "engine/txn/rule/rule.h"

namespace rdmacc {

// One per protocol file (and lock mode); the registry lists them.
extern const ProtocolRules kNowaitRules;
extern const ProtocolRules kNowaitSharedRules;
extern const ProtocolRules kWaitdieRules;
extern const ProtocolRules kWoundwaitRules;
extern const ProtocolRules kOccRules;
extern const ProtocolRules kMvccRules;
extern const ProtocolRules kSundialRules;
extern const ProtocolRules kCalvinRules;

// The lock word from free (or a reader count of this transaction's reads and no others, or its
// early lock) to own, and `verbs` behind it; a transaction that finds it held aborts: NOWAIT's
// lock, with which all but WAITDIE's begin (nowait.cc).
Step take_lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn, int verbs);
// From free to an early lock, which others may read past until take_lock() has made it whole.
Step take_early_lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);

// The same, of what has not changed since it was read: the locks of OCC and SUNDIAL (occ.cc).
Step lock_unchanged(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step lock_early_unchanged(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);

// An atomic read without a lock, as OCC and the reconnaissance of CALVIN want it (occ.cc).
Step read_untorn(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step read_untorn_gap(const Header& before, const Header& after, const TxnStamps& txn);

// Commit of the protocols that keep one version in place and stamp it only with wts.
constexpr Effect kInPlaceEffects[] = {Effect::kStamp,  Effect::kLength,  Effect::kIdentity,
                                      Effect::kRecord, Effect::kEntries, Effect::kUnlock};

}  // namespace rdmacc
