#pragma once
#include "engine/api/plain_data.h"
#include "engine/txn/rule/rule.h"

// Rules for locks that a transaction asks for before its commit and does not wait for (RowLock of
// engine/api/plain_data.h), and for reads that leave locked rows out: NOWAIT and SKIP LOCKED.

namespace rdmacc {

// The reasons that mean no more than that another transaction holds a lock.
bool is_held_by_another(AbortReason reason);

// `rules` without waiting for others, and as they are for ScanMode::kSkipLocked and kAsStored.
// `mode`: of the locks that are taken by them.
ProtocolRules no_wait_rules(const ProtocolRules& rules, RowLockMode mode = RowLockMode::kExclusive);
ProtocolRules skipping_locked(const ProtocolRules& rules);
ProtocolRules reading_as_stored(const ProtocolRules& rules);
ProtocolRules reading_at_rest(const ProtocolRules& rules);  // ScanMode::kQuiet

// By rules that skip: did the accepted snapshot show a lock of another transaction?
bool was_skipped(const HeaderSnapshot& seen, const TxnStamps& txn);

}  // namespace rdmacc
