#include "engine/txn/drive.h"

#include <algorithm>

#include "engine/storage/sundial_word.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Every lost CAS means that another transaction got on, so this is no wait; it only bounds the
// loop.
constexpr int kRoundsMax = 10'000;

// What they read goes to memory that is not there from the start.
constexpr int kNeedRoom = kReadRecord | kReadVersion | kReadStamps;

}  // namespace

class Driver {
 public:
  Driver(StageContext& context, Rule rule, std::span<RecordState> records)
      : context_(context), rule_(rule), records_(records), batch_(context.batch()) {}

  Status run() {
    RDMACC_RETURN_IF_ERROR(begin());
    const Status status = rounds();
    const Status cleared = stop_waiting();
    // A waiter word that may be left outranks the rest: it has to be looked for.
    return status.ok() || cleared.code() == Code::kUnavailable ? cleared : status;
  }

 private:
  Status begin();
  Status take_snapshots();
  static void begin_snapshot(RecordState& record);
  Status rounds();
  Status make_room(RecordState& record, const Step& step);
  void post(RecordState& record, const Step& step);
  bool note(RecordState& record, const Step& step) const;
  void note_won(RecordState& record, const Step& step) const;
  void judge(RecordState& record, Step& step, int looks);
  void accept(RecordState& record, const Step& step);
  Status stop_waiting();

  bool pending(const RecordState& record) const { return record.end == RecordState::End::kPending; }

  StageContext& context_;
  const Rule rule_;
  const std::span<RecordState> records_;
  DoorbellBatch batch_;
  boost::container::small_vector<Step, 16> steps_;
  size_t pending_ = 0;
  bool aborted_ = false;
};

Status Driver::begin() {
  CHECK(rule_ != nullptr);
  RDMACC_RETURN_IF_ERROR(take_snapshots());
  steps_.reserve(records_.size());
  for (RecordState& record : records_) {
    DCHECK(record.access != nullptr && !record.access->header.null() && pending(record));
    begin_snapshot(record);
    const Step& step = steps_.emplace_back(rule_(*record.access, nullptr, context_.stamps));
    if (step.verdict == Verdict::kDone) {
      record.end = RecordState::End::kDone;  // nothing to do
      continue;
    }
    CHECK(step.verdict == Verdict::kTry);
    pending_++;
    batch_.prefetch(record.access->header, sizeof(Header) + record.record_bytes);
  }
  batch_.await_prefetched();
  return Status();
}

Status Driver::take_snapshots() {
  const auto lacking = static_cast<size_t>(
      std::count_if(records_.begin(), records_.end(),
                    [](const RecordState& record) { return record.snapshot == nullptr; }));
  if (lacking == 0) return Status();
  auto* snapshot = context_.arena.allocate_array<HeaderSnapshot>(lacking);
  if (snapshot == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    if (record.snapshot == nullptr) record.snapshot = snapshot++;
  }
  return Status();
}

// A rule looks at nothing else before a verb has filled it.
void Driver::begin_snapshot(RecordState& record) {
  HeaderSnapshot& snapshot = *record.snapshot;
  snapshot.pre_read.wts = snapshot.pre_read.rts = snapshot.pre_read.sundial = 0;
  snapshot.cas_seen = 0;
  snapshot.versions = nullptr;
  snapshot.history = record.history;
}

Status Driver::rounds() {
  for (int looks = 0; pending_ > 0 && !aborted_; looks++) {
    if (context_.is_cancelled()) return Status(Code::kCancelled);
    bool all_wait = looks > 0;
    // Nothing is posted whose result would not be judged.
    for (size_t i = 0; i < records_.size(); i++) {
      if (!pending(records_[i]) || (steps_[i].verbs & kNeedRoom) == 0) continue;
      RDMACC_RETURN_IF_ERROR(make_room(records_[i], steps_[i]));
    }
    for (size_t i = 0; i < records_.size(); i++) {
      if (!pending(records_[i])) continue;
      all_wait = all_wait && steps_[i].verdict == Verdict::kLookAgain;
      post(records_[i], steps_[i]);
    }
    if (all_wait) context_.backoff(looks);
    RDMACC_RETURN_IF_ERROR(batch_.execute());
    for (size_t i = 0; i < records_.size(); i++) {
      if (pending(records_[i])) judge(records_[i], steps_[i], looks);
    }
  }
  return Status();
}

Status Driver::make_room(RecordState& record, const Step& step) {
  HeaderSnapshot& snapshot = *record.snapshot;
  if ((step.verbs & kReadRecord) != 0 && record.record == nullptr && record.record_bytes > 0) {
    record.record = context_.arena.allocate(record.record_bytes);
    if (record.record == nullptr) return out_of_registered_memory();
  }
  if ((step.verbs & kReadVersion) != 0 && record.version == nullptr) {
    record.version = context_.arena.allocate(sizeof(VersionHead) + record.record_bytes);
    if (record.version == nullptr) return out_of_registered_memory();
  }
  if ((step.verbs & kReadStamps) != 0 && snapshot.versions == nullptr && record.history > 0) {
    snapshot.versions = context_.arena.allocate_array<VersionHead>(record.history);
    if (snapshot.versions == nullptr) return out_of_registered_memory();
  }
  return Status();
}

[[gnu::flatten]] void Driver::post(RecordState& record, const Step& step) {
  DCHECK(step.verdict == Verdict::kTry || step.verdict == Verdict::kLookAgain);
  const GlobalAddress header = record.access->header;
  HeaderSnapshot& snapshot = *record.snapshot;
  const auto version_at = [&](uint32_t i) {
    return GlobalAddress::make(header.node(),
                               snapshot.versions_at + version_place(record.record_bytes, i));
  };
  snapshot.posted = step;
  if ((step.verbs & kCas) != 0) {
    DCHECK(step.word % 8 == 0 && step.word < sizeof(Header));
    batch_.compare_swap(header.plus(step.word), step.expected, step.desired, &snapshot.cas_seen);
  }
  if ((step.verbs & kPreRead) != 0) {
    batch_.read(header, &snapshot.pre_read, sizeof(Header), WordOrder::kAscending);
  }
  if ((step.verbs & kReadRecord) != 0 && record.record_bytes != 0) {
    DCHECK(record.record != nullptr);
    batch_.read(header.plus(kOffsetOfRecord), record.record, record.record_bytes);
  }
  if ((step.verbs & kReadVersion) != 0) {
    const auto i = static_cast<uint32_t>(step.version);
    DCHECK(step.version >= 0 && i < record.history && record.version != nullptr);
    batch_.read(version_at(i), record.version, sizeof(VersionHead) + record.record_bytes);
    batch_.read(version_at(i), &snapshot.version_stamp, sizeof(snapshot.version_stamp));
  }
  if ((step.verbs & kPostRead) != 0) {
    batch_.read(header, &snapshot.post_read, sizeof(Header), WordOrder::kDescending);
  }
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

// What a CAS that found what it expected has changed.
void Driver::note_won(RecordState& record, const Step& step) const {
  Access& access = *record.access;
  if (step.word == kOffsetOfLock) {
    record.newly_locked = step.expected != step.desired;
    if (step.desired == context_.stamps.ctts) {
      access.locked = true;
      access.reader_count = 0;  // the CAS expected no others
    } else {
      access.reader_count++;
    }
  } else if (step.word == kOffsetOfSundial) {
    access.lease_locked = sundial_locked(step.desired);
    access.lease = access.lease_locked ? step.expected : step.desired;
  } else if (step.word == kOffsetOfWaiter) {
    record.waiting = true;
  }
}

// Notes what a round found; false when the header is not (any more) what the access means.
bool Driver::note(RecordState& record, const Step& step) const {
  Access& access = *record.access;
  HeaderSnapshot& snapshot = *record.snapshot;
  if ((step.verbs & kReadReference) != 0 && snapshot.versions_at != kNoOlderVersion &&
      !may_be_versions(snapshot.versions_at, record.record_bytes, record.history,
                       context_.engine.layout.region_bytes)) {
    snapshot.versions_at = kOlderVersionsLost;
  }
  if ((step.verbs & kCas) != 0) {
    if (snapshot.cas_seen == step.expected) {
      note_won(record, step);
    } else if (step.word == kOffsetOfLock && snapshot.cas_seen == context_.stamps.ctts) {
      access.locked = true;  // two operations of one batch have met on one gap header
    }
  }
  if ((step.verbs & kPreRead) != 0) {
    if (!same_identity(access, snapshot.pre_read)) return false;
    record.accepted = snapshot.pre_read;
  }
  if ((step.verbs & kPostRead) != 0) {
    if (!same_identity(access, snapshot.post_read)) return false;
    record.accepted = snapshot.post_read;
  }
  return true;
}

void Driver::accept(RecordState& record, const Step& step) {
  record.end = RecordState::End::kDone;
  record.access->incarnation = record.accepted.incarnation;
  context_.engine.clock.observe(std::max(record.accepted.wts, record.accepted.rts));
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

void Driver::judge(RecordState& record, Step& step, int looks) {
  DCHECK(pending_ > 0);
  if (!note(record, step)) {
    // A lost CAS on a foreign header is a conflict like any other for a rule that does not wait,
    // but the location is wrong in the first place.
    record.end = RecordState::End::kStale;
    pending_--;
    return;
  }
  step = rule_(*record.access, record.snapshot, context_.stamps);
  if (step.verdict == Verdict::kDone) {
    accept(record, step);
    pending_--;
    return;
  }
  if (step.verdict == Verdict::kTry && looks < kRoundsMax) return;
  if (step.verdict == Verdict::kLookAgain && looks < context_.rules.looks_max) return;
  record.end = RecordState::End::kAbort;
  record.reason = step.verdict == Verdict::kAbort      ? step.reason
                  : context_.rules.locks_what_it_reads ? AbortReason::kWaitedTooLong
                                                       : AbortReason::kReadUnstable;
  context_.engine.clock.observe(
      std::max(record.snapshot->pre_read.wts, record.snapshot->pre_read.rts));
  pending_--;
  aborted_ = true;
}

// A transaction that stops waiting, with the lock or without, leaves no waiter word behind.
Status Driver::stop_waiting() {
  for (RecordState& record : records_) {
    if (!record.waiting) continue;
    record.waiting = false;
    batch_.compare_swap(record.access->header.plus(kOffsetOfWaiter), context_.stamps.ctts, 0,
                        &record.snapshot->cas_seen);
  }
  return batch_.execute();
}

Status drive(StageContext& context, Rule rule, std::span<RecordState> records) {
  return Driver(context, rule, records).run();
}

void note_read(const StageContext& context, const RecordState& record, Access& access) {
  DCHECK(record.end == RecordState::End::kDone && record.snapshot != nullptr);
  const bool absent = (record.accepted.flags & kFlagDeleted) != 0;
  access.read = true;
  access.locked_wts = record.accepted.wts;
  // Under timestamp ordering an absence is as of the transaction's time, whichever version shows
  // it.
  access.read_wts =
      absent && context.rules.reads_at_ctts ? context.stamps.just_before() : record.accepted.wts;
  if (!access.lease_locked) access.lease = record.snapshot->pre_read.sundial;
}

Status outcome_of(std::span<const RecordState> records) {
  bool stale = false;
  for (const RecordState& record : records) {
    if (record.end == RecordState::End::kAbort) return aborted(record.reason);
    stale = stale || record.end == RecordState::End::kStale;
  }
  return stale ? aborted(AbortReason::kStaleLocation) : Status();
}

}  // namespace rdmacc
