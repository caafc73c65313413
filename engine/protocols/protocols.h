#pragma once
#include "engine/txn/rule/rule.h"

namespace rdmacc {

// kOccRules and so on: one per protocol, and per file.
#define RDMACC_DECLARED(id, name, number) extern const ProtocolRules k##id##Rules;
RDMACC_PROTOCOLS(RDMACC_DECLARED)
#undef RDMACC_DECLARED

// Looks of a wait where shares are held. No word tells whose these are, so that waits may come to a
// circle which age does not prevent; that one of them is over ends it. 50 are some 0.2 ms of pauses
// besides the looks' own time.
constexpr int kLooksMaxBesideShares = 50;

// An atomic read without a lock, as OCC and the reconnaissance of CALVIN want it (occ.cc).
Step read_untorn(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step read_untorn_gap(const Header& before, const Header& after, const TxnStamps& txn);

// Everything at the ctts, as MVCC, TIMESTAMP and CICADA have it (mvcc.cc). May a reader go past the
// lock; the newest version, once a header shows that no older transaction can write it any more;
// what older versions there are, and which of them was the youngest at the ctts; all of this for
// one record, and for a gap.
bool passes_at_ctts(uint64_t lock, const TxnStamps& txn);
Step accept_newest(const HeaderSnapshot& seen, const TxnStamps& txn);
Step find_versions(const HeaderSnapshot& seen);
Step choose_version(const HeaderSnapshot& seen, const TxnStamps& txn);
Step read_at_ctts(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);
Step read_gap_at_ctts(const Header& before, const Header& after, const TxnStamps& txn);
bool may_take_slot_at_ctts(const Access& slot, const TxnStamps& txn);

// Commit of the protocols that keep one version in place and stamp it only with wts.
constexpr Effect kInPlaceEffects[] = {Effect::kStamp,  Effect::kLength,  Effect::kIdentity,
                                      Effect::kRecord, Effect::kEntries, Effect::kUnlock};
// And with the version that is written over: its stamp before its bytes, as everywhere.
constexpr Effect kVersionedEffects[] = {
    Effect::kVersionStamp, Effect::kVersionRecord, Effect::kStamp,   Effect::kLength,
    Effect::kIdentity,     Effect::kRecord,        Effect::kEntries, Effect::kUnlock};

}  // namespace rdmacc
