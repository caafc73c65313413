// How transactions agree on the times at which they commit, where readers register (MAAT): one that
// writes comes behind those that have read what it replaces, and these before it. Each has a slot
// that says what others have left it (engine/cluster/txn_slots.h).
#include <algorithm>

#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// How far a writer goes ahead of the first time that it could have, if there are readers to which
// nothing has been left yet: what these write may be as far ahead of what they have read.
constexpr uint64_t kRoomForReaders = 256;

}  // namespace

// What a look-up finds is registered for, unless it is going to be written anyway: then it is
// current at the commit, or the transaction loses.
Status Transaction::register_reads(StageContext& stage) {
  CHECK(!guest_);
  TxnSlots& slots = coordinator_.txn_slots;
  if (stage.stamps.reads_to_write || !slots.has(stamps_.ctts)) return Status();
  if (!is_reader_) {
    RDMACC_RETURN_IF_ERROR(slots.open(stamps_.ctts, stage.arena, counters_));
    is_reader_ = true;
  }
  stage.stamps.registers = true;
  return Status();
}

// As the locks have found them. What registers later finds the lock, and does not read.
Transaction::Readers Transaction::readers_of_writes() {
  Readers readers;
  for (const LockWork& work : writes_.locks()) {
    const bool other = work.waiter != 0 && work.waiter != stamps_.ctts;
    const bool known = std::find(readers.begin(), readers.end(), work.waiter) != readers.end();
    if (other && !known) readers.push_back(work.waiter);
  }
  return readers;
}

// Everything that is written is locked, and there is a time at which that may happen: behind those
// readers that have theirs, and behind what is left to the others.
Status Transaction::commit_behind_readers(StageContext& stage) {
  earliest_time_ = stamps_.commit_tts;
  if (writes_.locks().empty()) return Status();
  const Readers readers = readers_of_writes();
  if (readers.empty()) return Status();
  TxnSlots::Bounded others;
  RDMACC_RETURN_IF_ERROR(coordinator_.txn_slots.bound({readers.data(), readers.size()},
                                                      stamps_.commit_tts + kRoomForReaders,
                                                      stage.arena, counters_, others));
  if (others.fixed >= kSundialWtsMax) return aborted(AbortReason::kOutOfTime);
  earliest_time_ = std::max(earliest_time_, others.fixed + 1);
  stamps_.commit_tts = std::max(earliest_time_, others.running + 1);
  stage.stamps.commit_tts = stamps_.commit_tts;
  return Status();
}

// Something that was read has been replaced, or is about to be. If its writers have to come behind
// this transaction, that is no loss. What has to be current at the commit gets no such time.
bool Transaction::may_commit_before(const Status& lost) const {
  const bool known_to_writers = is_reader_ && !registered_late_;
  return known_to_writers && !needs_current_reads_ && reason_of(lost) == AbortReason::kLeaseLost;
}

// Fixes the time, or the latest that others have left. What it is registered for holds then,
// replaced or not.
Status Transaction::commit_before_writers(StageContext& stage) {
  TxnSlots& slots = coordinator_.txn_slots;
  constexpr int kTriesMax = 8;  // each ends earlier than the one before
  for (int attempt = 0; attempt < kTriesMax; ++attempt) {
    const uint64_t time = stamps_.commit_tts;
    uint64_t latest = 0;
    RDMACC_RETURN_IF_ERROR(slots.fix(stamps_.ctts, time, stage.arena, counters_, latest));
    CHECK(latest <= time);
    if (latest == time) {
      stamps_.fixed = stage.stamps.fixed = true;
      return Status();
    }
    if (latest < earliest_time_) break;
    const Readers readers = readers_of_writes();
    TxnSlots::Bounded others;
    if (!readers.empty()) {
      RDMACC_RETURN_IF_ERROR(
          slots.bound({readers.data(), readers.size()}, latest, stage.arena, counters_, others));
    }
    if (std::max(others.fixed, others.running) >= latest) break;
    stamps_.commit_tts = stage.stamps.commit_tts = latest;
  }
  return aborted(AbortReason::kOutOfTime);
}

// `reads`: those that are accesses, and have not held by their leases.
Status Transaction::validate_before_writers(StageContext& stage, std::span<Access*> reads) {
  RDMACC_RETURN_IF_ERROR(commit_before_writers(stage));
  const auto validate = [&](std::span<Access*> some) {
    return some.empty() ? Status() : carry_out_validate(stage, parameters_.plan, some);
  };
  RDMACC_RETURN_IF_ERROR(validate(reads));
  return validate_scanned(stage, validate);
}

}  // namespace rdmacc
