#pragma once
#include <algorithm>

#include "engine/txn/driver/drive.h"
#include "rdma/base/check.h"

// The rule driver's own code, compiled for each rule in its protocol's file: the rule's answer is
// then known where its verbs are added, and most of both folds away.

namespace rdmacc {

// What does not depend on the rule.
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
  Status make_room(RecordState& record, const Step& step);
  void post(RecordState& record, const Step& step);
  void post_wounds(RecordState& record, const Step& step);
  bool note(RecordState& record, const Step& step);
  void note_won(RecordState& record, const Step& step);
  void check_reference(RecordState& record) const;
  void accept(RecordState& record, const Step& step) const;
  void give_up(RecordState& record, const Step& step);
  uint64_t holder_here(const RecordState& record) const;
  bool waits_for_holder(RecordState& record, const Step& step) const;
  Status stop_waiting();

  StageContext& context_;
  const std::span<RecordState> records_;
  DoorbellBatch batch_;
  bool aborted_ = false;
  bool waits_ = false;  // a record's waiter word may hold this transaction's ctts, or its wound
};

// `RuleType` is called as a Rule is.
template <typename RuleType>
class Driver : DriverBase {
 public:
  Driver(StageContext& context, RuleType rule, std::span<RecordState> records)
      : DriverBase(context, records), rule_(rule) {}

  Status run() {
    RDMACC_RETURN_IF_ERROR(take_snapshots());
    for (const RecordState& record : records_) {
      DCHECK(record.access != nullptr && !record.access->header.null() && pending(record));
      batch_.prefetch(record.access->header, sizeof(Header) + record.record_bytes);
    }
    batch_.await_prefetched();
    const Status status = batch_.in_place() ? one_by_one() : rounds();
    if (!waits_) return status;
    const Status cleared = stop_waiting();
    // A waiter word that may be left outranks the rest: it has to be looked for.
    return status.ok() || cleared.code() == Code::kUnavailable ? cleared : status;
  }

 private:
  Status one_by_one();
  Status alone(RecordState& record);
  Status look_again(RecordState& record, Step step);
  Status rounds();
  Step begin(RecordState& record);
  void judge(RecordState& record, Step& step, int looks);

  const RuleType rule_;
};

template <typename RuleType>
Status Driver<RuleType>::one_by_one() {
  for (RecordState& record : records_) {
    RDMACC_RETURN_IF_ERROR(alone(record));
    if (aborted_) break;
  }
  return batch_.execute();
}

template <typename RuleType>
[[gnu::flatten]] Status Driver<RuleType>::alone(RecordState& record) {
  Step step = begin(record);
  if (!pending(record)) return Status();
  // Written out, so that what the rule begins with is known here.
  if (context_.is_cancelled()) return Status(Code::kCancelled);
  if (lacks_room(record, step)) RDMACC_RETURN_IF_ERROR(make_room(record, step));
  post(record, step);
  RDMACC_RETURN_IF_ERROR(batch_.settle());
  judge(record, step, 0);
  return pending(record) ? look_again(record, step) : Status();
}

template <typename RuleType>
[[gnu::noinline]] Status Driver<RuleType>::look_again(RecordState& record, Step step) {
  for (int looks = 1; pending(record); looks++) {
    if (context_.is_cancelled()) return Status(Code::kCancelled);
    if (step.verdict == Verdict::kLookAgain) context_.backoff(looks);
    if (lacks_room(record, step)) RDMACC_RETURN_IF_ERROR(make_room(record, step));
    post(record, step);
    RDMACC_RETURN_IF_ERROR(batch_.settle());
    judge(record, step, looks);
  }
  return Status();
}

template <typename RuleType>
Status Driver<RuleType>::rounds() {
  boost::container::small_vector<Step, 16> steps;
  steps.reserve(records_.size());
  size_t open = 0;
  for (RecordState& record : records_) {
    steps.push_back(begin(record));
    if (pending(record)) open++;
  }
  for (int looks = 0; open > 0 && !aborted_; looks++) {
    if (context_.is_cancelled()) return Status(Code::kCancelled);
    bool all_wait = looks > 0;
    // Nothing is posted whose result would not be judged.
    for (size_t i = 0; i < records_.size(); i++) {
      if (!pending(records_[i])) continue;
      all_wait = all_wait && steps[i].verdict == Verdict::kLookAgain;
      if (lacks_room(records_[i], steps[i])) {
        RDMACC_RETURN_IF_ERROR(make_room(records_[i], steps[i]));
      }
    }
    if (all_wait) context_.backoff(looks);
    for (size_t i = 0; i < records_.size(); i++) {
      if (pending(records_[i])) post(records_[i], steps[i]);
    }
    RDMACC_RETURN_IF_ERROR(batch_.execute());
    for (size_t i = 0; i < records_.size(); i++) {
      if (!pending(records_[i])) continue;
      judge(records_[i], steps[i], looks);
      if (!pending(records_[i])) open--;
    }
  }
  return Status();
}

// The first step; of a record with nothing to do that is its end.
template <typename RuleType>
Step Driver<RuleType>::begin(RecordState& record) {
  begin_snapshot(record);
  const Step step = rule_(*record.access, nullptr, context_.stamps);
  CHECK(step.verdict == Verdict::kTry || step.verdict == Verdict::kDone);
  if (step.verdict == Verdict::kDone) record.end = RecordState::End::kDone;
  return step;
}

template <typename RuleType>
void Driver<RuleType>::judge(RecordState& record, Step& step, int looks) {
  if (!note(record, step)) {
    // A lost CAS on a foreign header is a conflict like any other for a rule that does not wait,
    // but the location is wrong in the first place.
    record.end = RecordState::End::kStale;
    return;
  }
  step = rule_(*record.access, record.snapshot, context_.stamps);
  if (step.verdict == Verdict::kDone) return accept(record, step);
  if (step.verdict == Verdict::kTry && looks < kRoundsMax) return;
  if (step.verdict == Verdict::kLookAgain && looks < context_.rules.looks_max) return;
  if (waits_for_holder(record, step)) {
    step = begin(record);
    return;
  }
  give_up(record, step);
}

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
  if ((step.verbs & kPreRead) != 0) {
    batch_.read(slot, 0, &snapshot.pre_read, sizeof(Header), WordOrder::kAscending);
  }
  if ((step.verbs & kReadRecord) != 0 && record.record_bytes != 0) {
    DCHECK(record.record != nullptr);
    batch_.read(slot, kOffsetOfRecord, record.record, record.record_bytes);
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
  const HeaderSnapshot& snapshot = *record.snapshot;
  if ((step.verbs & kReadReference) != 0) check_reference(record);
  if ((step.verbs & kCas) != 0) {
    if (snapshot.cas_seen == step.expected) {
      note_won(record, step);
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

// What a CAS that found what it expected has changed.
inline void DriverBase::note_won(RecordState& record, const Step& step) {
  Access& access = *record.access;
  if (step.word == kOffsetOfLock) {
    record.newly_locked = step.expected != step.desired;
    if (step.desired == context_.stamps.ctts) {
      access.locked = true;
      access.reader_count = 0;  // the CAS expected no others
    } else {
      access.reader_count++;
    }
  } else if (step.word == kOffsetOfWaiter) {
    record.waiting = waits_ = true;
  } else if (context_.rules.note_cas != nullptr) {
    context_.rules.note_cas(access, step);
  }
}

inline void DriverBase::accept(RecordState& record, const Step& step) const {
  const Header* latest = record.latest;
  CHECK(latest != nullptr);  // no rule is done before it has seen a header
  record.end = RecordState::End::kDone;
  record.access->incarnation = latest->incarnation;
  record.accepted = {latest->wts, latest->key_hash, record.snapshot->pre_read.sundial,
                     latest->length, latest->flags};
  context_.engine.clock.observe(std::max(latest->wts, latest->rts));
  if (step.version == kBeforeFirstVersion) {
    record.accepted.flags |= kFlagDeleted;
  } else if (step.version >= 0) {
    DCHECK(record.version != nullptr);
    VersionHead head;
    memcpy(&head, record.version, sizeof(head));
    record.accepted.wts = head.stamp;
    record.accepted.length = head.length;
    record.accepted.flags = head.flags;
    record.record = record.version + sizeof(head);
  }
}

template <Rule kRule>
Status drive_fixed(StageContext& context, Rule, std::span<RecordState> records) {
  const auto rule = [](const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
    return kRule(access, seen, txn);
  };
  return Driver(context, rule, records).run();
}

template <Rule kRule>
constexpr StageRule driven_by{kRule, drive_fixed<kRule>};

}  // namespace rdmacc
