#pragma once
#include "engine/txn/rule.h"

// Locks that a transaction asks for before its commit and does not wait for, and looks at rows that
// pass over locked ones: what SQL calls NOWAIT and SKIP LOCKED.

namespace rdmacc {

enum class RowLock : uint8_t {
  kGot,     // the row was read, and is locked if that was asked for and the protocol locks
  kBusy,    // another transaction holds it; nothing has changed
  kAbsent,  // there is no such row; its absence was read
};

enum class ScanMode : uint8_t {
  kSerializable,
  kNoWait,      // the same, but what others hold ends it at once
  kSkipLocked,  // rows that others hold are left out. What is seen is committed, whole, and no
                // part of the read set: lock it to rely on it
};

// A scan that wants the whole of each row, not only so many bytes of its beginning.
constexpr uint32_t kWholeRow = 0xFFFFFFFF;

// The reasons that mean no more than that another transaction holds a lock.
bool is_held_by_another(AbortReason reason);

// `rules` without waiting for others, and as they are for ScanMode::kSkipLocked.
ProtocolRules no_wait_rules(const ProtocolRules& rules);
ProtocolRules skipping_locked(const ProtocolRules& rules);

// By rules that skip: did the accepted look show a lock of another transaction?
bool was_skipped(const HeaderSnapshot& seen, const TxnStamps& txn);

}  // namespace rdmacc
