// A transaction's locks before its commit, which do not wait, and its scans that pass over locked
// rows.

#include <algorithm>
#include <utility>

#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/row_lock.h"
#include "engine/txn/transaction/transaction.h"

namespace rdmacc {
namespace {

constexpr int kAttemptsMax = 4;

}  // namespace

// An operation that may be a repetition of one that has met another transaction's lock: that one
// was no loss. What it has locked or read on the way is noted, and all else is looked at again.
void Transaction::begin_again() {
  held_by_ = 0;
  if (is_held_by_another(reason_of(failure_)) && !lock_state_unknown_) failure_ = Status();
}

// Takes the header's lock by the protocol's rule, or leaves it as it was.
Status Transaction::lock_now(StageContext& stage, Access& access, RowLockMode mode) {
  CHECK(mode >= RowLockMode::kShare);
  const bool shares = mode == RowLockMode::kShare;
  if (access.locked || (shares && access.held())) return Status();
  CHECK(!access.header.null() && !access.gap);
  if (shares) {
    RDMACC_RETURN_IF_ERROR(coordinator_.gate.tell_sharing(counters_));
    shares_rows_ = true;
  }
  const uint32_t shared_before = access.reader_count;
  LockWork work{.access = &access};
  const Status status = lock_accesses(stage, std::span(&work, 1));
  if (status.ok() || (!access.locked && access.reader_count == shared_before)) return status;
  RDMACC_RETURN_IF_ERROR(unlock(stage, access));
  return status;
}

// What two-phase locking shares it keeps. Not ok: the lock is noted still, for the end.
Status Transaction::unlock(StageContext& stage, Access& access) {
  CHECK(access.held());
  Held held(access);
  held.registered = false;
  if (parameters_.rules->locks_what_it_reads()) held.reader_count = 0;
  RDMACC_RETURN_IF_ERROR(release_accesses(stage, std::span(&held, 1), /*certain=*/true));
  access.note_unlocked();
  access.reader_count -= held.reader_count;
  return Status();
}

// What was read under the lock stays in the read set: from now on others may change it.
Status Transaction::let_go() {
  if (!started() || prepared_ || to_let_go_.empty()) return Status();
  scratch_.reset();
  StageContext stage = context(scratch_, /*cancellable=*/false);
  Status status;
  while (!to_let_go_.empty() && status.ok()) {
    Access& access = *to_let_go_.back();
    if (access.held()) status = unlock(stage, access);
    if (status.ok()) to_let_go_.pop_back();
  }
  note_failure(status);
  return status;
}

// One look-up of a key that nothing is known of, and its lock (kNone: none). What two-phase locking
// has locked on the way stays locked, found or not.
Status Transaction::find_and_lock(StageContext& stage, KeyState& state, RowLockMode mode,
                                  RowLock& result) {
  KeyWork work = KeyWork::of(state.table, state.hash, state.key);
  Status status = find_keys(stage, std::span(&work, 1));
  const bool locks = mode != RowLockMode::kNone;
  if (status.ok() && work.result == KeyWork::Result::kFound && locks) {
    Access* known = accesses_.find(work.access);
    if (known != nullptr) {
      // Every share that this transaction counts is its own, whichever look-up took it.
      known->reader_count += std::exchange(work.access.reader_count, 0);
    }
    status = lock_now(stage, known != nullptr ? *known : work.access, mode);
  } else if (status.ok() && work.result == KeyWork::Result::kAborted) {
    status = aborted(work.reason);
  }
  if (status.ok()) {
    result = work.result == KeyWork::Result::kFound ? RowLock::kGot : RowLock::kAbsent;
    return note_found(work, state);
  }
  work.result = KeyWork::Result::kPending;
  if (!work.access.to_give_back()) work.access = Access{};
  const Status noted = note_found(work, state);
  return noted.ok() ? status : noted;
}

Status Transaction::try_lock(TableId table, std::string_view key, RowLockMode mode,
                             RowLock& result) {
  CHECK(started() && !prepared_);
  begin_again();
  RDMACC_RETURN_IF_ERROR(let_go());
  KeyState& state = keys_.touch(table, key);
  if (state.base == KeyState::Base::kUnknown && has_scanned()) take_from_scan(state);
  // Two-phase locking has locked what it has read.
  const bool locks = !parameters_.rules->commits_in_order &&
                     (mode == RowLockMode::kExclusive ||
                      (mode == RowLockMode::kShare && parameters_.rules->lock_early));
  const RowLockMode wanted = locks ? mode : RowLockMode::kNone;
  const bool was_held = state.tuple != nullptr && state.tuple->held();
  const ProtocolRules rules = no_wait_rules(*parameters_.rules, mode);
  Status status;
  for (int attempt = 0; attempt < kAttemptsMax; attempt++) {
    scratch_.reset();
    StageContext at_once = context(scratch_).by(rules);
    at_once.stamps.reads_to_write |= mode != RowLockMode::kNone;
    at_once.stamps.reads_to_lock = mode == RowLockMode::kExclusive;
    result = state.base == KeyState::Base::kExists ? RowLock::kGot : RowLock::kAbsent;
    if (state.base == KeyState::Base::kUnknown) {
      status = find_and_lock(at_once, state, wanted, result);
      const bool changed = reason_of(status) == AbortReason::kVersionChanged ||
                           reason_of(status) == AbortReason::kStaleLocation;
      if (changed) continue;  // between read and lock: nothing has been relied on yet
    } else if (state.base == KeyState::Base::kExists && locks) {
      CHECK(state.tuple != nullptr);
      status = lock_now(at_once, *state.tuple, mode);
    }
    break;
  }
  if (is_held_by_another(reason_of(status))) {
    result = RowLock::kBusy;
    return Status();
  }
  // A shared lock that becomes exclusive stays so for as long as it would have been shared.
  if (!was_held && state.tuple != nullptr && state.tuple->held()) {
    state.locked_early = true;
    state.lock_level = level_;
  }
  note_failure(status);
  return status;
}

Status Transaction::look_at(const ProtocolRules& rules, std::span<ScanWork> groups,
                            VerbArena& arena) {
  CHECK(!rules.locks_what_it_reads());
  StageContext stage = context(arena).by(rules);
  Status status = scan_groups(stage, groups, 0);
  for (const ScanWork& group : groups) {
    if (status.ok() && group.result == ScanWork::Result::kAborted) status = aborted(group.reason);
  }
  note_failure(status);
  return status;
}

namespace {

// Of each read that a scan has made.
template <typename Visit>
void for_reads(const ScanWork& group, const Visit& visit) {
  visit(group.gap);
  for (const ScannedRow& row : group.rows) visit(row.read.access(group.table));
  for (const ScannedTuple& tuple : group.tuples) visit(tuple.access);
}

}  // namespace

// ScanMode::kQuiet gives the newest rows, and what the transaction makes of them is no older than
// they are: others that read both see one order.
Status Transaction::look_at_rest(std::span<ScanWork> groups, VerbArena& arena) {
  const ProtocolRules& rules = *parameters_.rules;
  RDMACC_RETURN_IF_ERROR(look_at(reading_at_rest(rules), groups, arena));
  bool later = false;
  for (const ScanWork& group : groups) {
    if (group.result != ScanWork::Result::kDone) continue;
    if (rules.reads_at_ctts) {
      for_reads(group, [&](const Access& read) { later |= read.read_wts > stamps_.ctts; });
    } else if (rules.commits_at_least != nullptr) {
      for_reads(group, [&](const Access& read) {
        commits_behind_ = std::max(commits_behind_, rules.commits_at_least(read));
      });
    }
  }
  if (!later) return Status();
  const Status late = aborted(AbortReason::kTooLate);
  note_failure(late);
  return late;
}

}  // namespace rdmacc
