#pragma once
#include <algorithm>

#include "engine/txn/driver/in_place_rounds.h"

namespace rdmacc {

// What of the driver (driver.h) does not depend on the rule: from its answers to verbs, and from
// what these have read to what the records are told.
class DriverBase {
 protected:
  DriverBase(StageContext& context, std::span<RecordState> records)
      : context_(context), records_(records), batch_(context.batch()) {}

  // Every lost CAS means that another transaction got on, so this is no wait; it only bounds the
  // loop.
  static constexpr int kRoundsMax = 10'000;
  // What they read goes to memory that is not there from the start.
  static constexpr int kNeedRoom = kReadRecord | kReadVersion | kReadStamps;

  static bool pending(const RecordState& record) {
    return record.end == RecordState::End::kPending;
  }
  Status take_snapshots();
  static void begin_snapshot(RecordState& record);
  bool lacks_room(const RecordState& record, const Step& step) const;
  bool reads_together(const RecordState& record, const Step& step) const;
  Status make_room(RecordState& record, const Step& step);
  void post(RecordState& record, const Step& step);
  void post_wounds(RecordState& record, const Step& step);
  bool note(RecordState& record, const Step& step);
  Status look_before_locking(std::span<const Step> steps);
  void check_reference(RecordState& record) const;
  uint64_t over_us() const;
  void pause(std::span<const Step> steps, int looks) const;
  void accept(RecordState& record, const Step& step) const;
  void give_up(RecordState& record, const Step& step);
  uint64_t holder_of(const RecordState& record) const;
  uint64_t holder_here(const RecordState& record) const;
  bool waits_for_holder(RecordState& record, const Step& step) const;
  bool holder_stands_still(RecordState& record, int looks) const;
  Status stop_waiting();

  StageContext& context_;
  const std::span<RecordState> records_;
  DoorbellBatch batch_;
  bool aborted_ = false;
  bool waits_ = false;  // a record's waiter word may hold this transaction's ctts, or its wound
};

// A rule looks at nothing else before a verb has filled it.
inline void DriverBase::begin_snapshot(RecordState& record) {
  HeaderSnapshot& snapshot = *record.snapshot;
  snapshot.pre_read.wts = snapshot.pre_read.rts = snapshot.pre_read.sundial = 0;
  snapshot.cas_seen = 0;
  snapshot.versions = nullptr;
  snapshot.history = record.history;
}

inline bool DriverBase::lacks_room(const RecordState& record, const Step& step) const {
  return (step.verbs & kNeedRoom) != 0 &&
         ((step.verbs & kNeedRoom) != kReadRecord || record.record == nullptr);
}

// One READ has header and record where the lock keeps both as they are: what relies on the order of
// its READs looks at the header once more. Where verbs are carried out in place, nothing is saved.
inline bool DriverBase::reads_together(const RecordState& record, const Step& step) const {
  constexpr int kReads = kPreRead | kReadRecord | kPostRead;
  return (step.verbs & kReads) == (kPreRead | kReadRecord) && record.record_bytes != 0 &&
         !batch_.in_place() && context_.engine.worker.scheduler().savings().one_read;
}

inline void DriverBase::post(RecordState& record, const Step& step) {
  DCHECK(step.verdict == Verdict::kTry || step.verdict == Verdict::kLookAgain);
  const GlobalAddress header = record.access->header;
  const VerbTarget slot = batch_.target(header, kOffsetOfRecord + record.record_bytes);
  HeaderSnapshot& snapshot = *record.snapshot;
  const auto version_at = [&](uint32_t i) {
    return GlobalAddress::make(header.node(),
                               snapshot.versions_at + version_place(record.record_bytes, i));
  };
  snapshot.posted = step;
  if ((step.verbs & kCas) != 0) {
    DCHECK(step.word % 8 == 0 && step.word < sizeof(Header));
    batch_.compare_swap(slot, step.word, step.expected, step.desired, &snapshot.cas_seen);
  }
  if (reads_together(record, step)) {
    DCHECK(record.record != nullptr);
    static_assert(kOffsetOfRecord == sizeof(Header));
    batch_.read(slot, 0, record.record - sizeof(Header), kOffsetOfRecord + record.record_bytes);
  } else {
    if ((step.verbs & kPreRead) != 0) {
      batch_.read(slot, 0, &snapshot.pre_read, sizeof(Header), WordOrder::kAscending);
    }
    if ((step.verbs & kReadRecord) != 0 && record.record_bytes != 0) {
      DCHECK(record.record != nullptr);
      batch_.read(slot, kOffsetOfRecord, record.record, record.record_bytes);
    }
  }
  if ((step.verbs & kReadVersion) != 0) {
    const auto i = static_cast<uint32_t>(step.version);
    DCHECK(step.version >= 0 && i < record.history && record.version != nullptr);
    batch_.read(version_at(i), record.version, sizeof(VersionHead) + record.record_bytes);
    batch_.read(version_at(i), &snapshot.version_stamp, sizeof(snapshot.version_stamp));
  }
  if ((step.verbs & kPostRead) != 0) {
    batch_.read(slot, 0, &snapshot.post_read, sizeof(Header), WordOrder::kDescending);
  }
  if ((step.verbs & (kWound | kReadWound)) != 0) post_wounds(record, step);
  if ((step.verbs & kAwait) != 0) snapshot.over_us = over_us();
  if ((step.verbs & kReadReference) != 0) {
    batch_.read(header.plus(versions_reference_place(record.record_bytes)), &snapshot.versions_at,
                sizeof(snapshot.versions_at));
  }
  if ((step.verbs & kReadStamps) != 0) {
    for (uint32_t i = 0; i < record.history; i++) {
      batch_.read(version_at(i), &snapshot.versions[i], sizeof(VersionHead));
    }
  }
}

// Notes what a round found; false when the header is not (any more) what the access means.
inline bool DriverBase::note(RecordState& record, const Step& step) {
  Access& access = *record.access;
  HeaderSnapshot& snapshot = *record.snapshot;
  if (reads_together(record, step)) {
    memcpy(&snapshot.pre_read, record.record - sizeof(Header), sizeof(Header));
  }
  if ((step.verbs & kReadReference) != 0) check_reference(record);
  if ((step.verbs & kCas) != 0) {
    if (snapshot.cas_seen == step.expected) {
      const bool waits = note_won_cas(context_, step, access, record.newly_locked);
      record.waiting = record.waiting || waits;
      waits_ = waits_ || waits;
    } else if (step.word == kOffsetOfLock && snapshot.cas_seen == context_.stamps.ctts) {
      access.locked = true;  // two operations of one batch have met on one gap header
    }
  }
  if ((step.verbs & kPreRead) != 0) {
    if (!same_identity(access, snapshot.pre_read)) return false;
    record.latest = &snapshot.pre_read;
  }
  if ((step.verbs & kPostRead) != 0) {
    if (!same_identity(access, snapshot.post_read)) return false;
    record.latest = &snapshot.post_read;
  }
  return true;
}

inline void DriverBase::accept(RecordState& record, const Step& step) const {
  const Header* latest = record.latest;
  CHECK(latest != nullptr);  // no rule is done before it has seen a header
  record.end = RecordState::End::kDone;
  record.access->incarnation = latest->incarnation;
  record.accepted = {
      latest->wts,    latest->key_hash, step.lease_or(record.snapshot->pre_read.sundial),
      latest->waiter, latest->length,   latest->flags};
  context_.engine.clock.observe(std::max(latest->wts, latest->rts));
  if (step.version == kBeforeFirstVersion) {
    record.accepted.flags |= kFlagDeleted;
  } else if (step.version >= 0) {
    DCHECK(record.version != nullptr);
    VersionHead head;
    memcpy(&head, record.version, sizeof(head));
    record.accepted.wts = head.stamp;
    record.accepted.lease = kLeaseOfOldVersion;
    record.accepted.length = head.length;
    record.accepted.flags = head.flags;
    record.record = record.version + sizeof(head);
  }
}

}  // namespace rdmacc
