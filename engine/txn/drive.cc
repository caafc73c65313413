#include "engine/txn/drive.h"

#include "engine/storage/sundial_word.h"

namespace rdmacc {
namespace {

// Every lost CAS means that another transaction got on, so this is no wait; it only bounds the
// loop.
constexpr int kRoundsMax = 10'000;

}  // namespace

class Driver {
 public:
  Driver(StageContext& context, Rule rule, std::span<Driven> records)
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
  Status rounds();
  Status make_room(Driven& record, const Step& step);
  void post(Driven& record, const Step& step);
  bool note(Driven& record, const Step& step) const;
  void note_won(Driven& record, const Step& step) const;
  void judge(Driven& record, Step& step, int looks);
  void accept(Driven& record, const Step& step);
  Status stop_waiting();

  bool pending(const Driven& record) const { return record.end == Driven::End::kPending; }

  StageContext& context_;
  const Rule rule_;
  const std::span<Driven> records_;
  DoorbellBatch batch_;
  boost::container::small_vector<Step, 4> steps_;
  size_t pending_ = 0;
  bool aborted_ = false;
};

Status Driver::begin() {
  steps_.resize(records_.size());
  for (size_t i = 0; i < records_.size(); i++) {
    Driven& record = records_[i];
    if (record.look == nullptr) record.look = context_.arena.allocate_array<Look>(1);
    if (record.look == nullptr) return out_of_registered_memory();
    *record.look = Look{};
    record.look->history = record.history;
    steps_[i] = rule_(*record.access, nullptr, context_.stamps);
    if (steps_[i].verdict == Verdict::kDone) {
      record.end = Driven::End::kDone;  // nothing to do
      continue;
    }
    CHECK(steps_[i].verdict == Verdict::kTry);
    pending_++;
  }
  return Status();
}

Status Driver::rounds() {
  for (int looks = 0; pending_ > 0 && !aborted_; looks++) {
    if (context_.is_cancelled()) return Status(Code::kCancelled);
    bool all_wait = looks > 0;
    // Nothing is posted that would not be looked at.
    for (size_t i = 0; i < records_.size(); i++) {
      if (pending(records_[i])) RDMACC_RETURN_IF_ERROR(make_room(records_[i], steps_[i]));
    }
    for (size_t i = 0; i < records_.size(); i++) {
      if (!pending(records_[i])) continue;
      all_wait = all_wait && steps_[i].verdict == Verdict::kLookAgain;
      post(records_[i], steps_[i]);
    }
    if (all_wait) context_.give_way(looks);
    RDMACC_RETURN_IF_ERROR(batch_.execute());
    for (size_t i = 0; i < records_.size(); i++) {
      if (pending(records_[i])) judge(records_[i], steps_[i], looks);
    }
  }
  return Status();
}

Status Driver::make_room(Driven& record, const Step& step) {
  Look& look = *record.look;
  if ((step.verbs & kReadVersion) != 0 && record.version == nullptr) {
    record.version = context_.arena.allocate(sizeof(VersionHead) + record.record_bytes);
    if (record.version == nullptr) return out_of_registered_memory();
  }
  if ((step.verbs & kReadStamps) != 0 && look.versions == nullptr && record.history > 0) {
    look.versions = context_.arena.allocate_array<VersionHead>(record.history);
    if (look.versions == nullptr) return out_of_registered_memory();
  }
  return Status();
}

void Driver::post(Driven& record, const Step& step) {
  const GlobalAddress header = record.access->header;
  Look& look = *record.look;
  const auto version_at = [&](uint32_t i) {
    return header.plus(version_place(record.record_bytes, i));
  };
  look.posted = step;
  if ((step.verbs & kCas) != 0) {
    batch_.compare_swap(header.plus(step.word), step.expected, step.desired, &look.cas_seen);
  }
  if ((step.verbs & kFirstLook) != 0) {
    batch_.read(header, &look.first, sizeof(Header), WordOrder::kAscending);
  }
  if ((step.verbs & kReadRecord) != 0 && record.record_bytes != 0) {
    batch_.read(header.plus(kOffsetOfRecord), record.record, record.record_bytes);
  }
  if ((step.verbs & kReadVersion) != 0) {
    const auto i = static_cast<uint32_t>(step.version);
    batch_.read(version_at(i), record.version, sizeof(VersionHead) + record.record_bytes);
    batch_.read(version_at(i), &look.version_stamp, sizeof(look.version_stamp));
  }
  if ((step.verbs & kLastLook) != 0) {
    batch_.read(header, &look.last, sizeof(Header), WordOrder::kDescending);
  }
  if ((step.verbs & kReadStamps) != 0) {
    for (uint32_t i = 0; i < record.history; i++) {
      batch_.read(version_at(i), &look.versions[i], sizeof(VersionHead));
    }
  }
}

// What a CAS that found what it expected has changed.
void Driver::note_won(Driven& record, const Step& step) const {
  Access& access = *record.access;
  if (step.word == kOffsetOfLock) {
    record.newly_locked = step.expected != step.desired;
    if (step.desired == context_.stamps.ctts) {
      access.locked = true;
      access.shares = 0;  // the CAS expected no others
    } else {
      access.shares++;
    }
  } else if (step.word == kOffsetOfSundial) {
    access.lease_locked = sundial_locked(step.desired);
    access.lease = access.lease_locked ? step.expected : step.desired;
  } else if (step.word == kOffsetOfWaiter) {
    record.waiting = true;
  }
}

// Notes what a round found; false when the header is not (any more) what the access means.
bool Driver::note(Driven& record, const Step& step) const {
  Access& access = *record.access;
  const Look& look = *record.look;
  if ((step.verbs & kCas) != 0) {
    if (look.cas_seen == step.expected) {
      note_won(record, step);
    } else if (step.word == kOffsetOfLock && look.cas_seen == context_.stamps.ctts) {
      access.locked = true;  // two operations of one batch have met on one gap header
    }
  }
  if ((step.verbs & kFirstLook) != 0) {
    if (!same_identity(access, look.first)) return false;
    record.accepted = look.first;
  }
  if ((step.verbs & kLastLook) != 0) {
    if (!same_identity(access, look.last)) return false;
    record.accepted = look.last;
  }
  return true;
}

void Driver::accept(Driven& record, const Step& step) {
  record.end = Driven::End::kDone;
  record.access->incarnation = record.accepted.incarnation;
  context_.engine.clock.observe(std::max(record.accepted.wts, record.accepted.rts));
  if (step.version == kBeforeFirstVersion) {
    record.accepted.flags |= kFlagDeleted;
  } else if (step.version >= 0) {
    VersionHead head;
    memcpy(&head, record.version, sizeof(head));
    record.accepted.wts = head.stamp;
    record.accepted.length = head.length;
    record.accepted.flags = head.flags;
    record.record = record.version + sizeof(head);
  }
}

void Driver::judge(Driven& record, Step& step, int looks) {
  if (!note(record, step)) {
    // A lost CAS on a foreign header is a conflict like any other for a rule that does not wait,
    // but the location is wrong in the first place.
    record.end = Driven::End::kStale;
    pending_--;
    return;
  }
  step = rule_(*record.access, record.look, context_.stamps);
  if (step.verdict == Verdict::kDone) {
    accept(record, step);
    pending_--;
    return;
  }
  if (step.verdict == Verdict::kTry && looks < kRoundsMax) return;
  if (step.verdict == Verdict::kLookAgain && looks < context_.rules.looks_max) return;
  record.end = Driven::End::kAbort;
  record.reason = step.verdict == Verdict::kAbort      ? step.reason
                  : context_.rules.locks_what_it_reads ? AbortReason::kWaitedTooLong
                                                       : AbortReason::kReadUnstable;
  context_.engine.clock.observe(std::max(record.look->first.wts, record.look->first.rts));
  pending_--;
  aborted_ = true;
}

// A transaction that stops waiting, with the lock or without, leaves no waiter word behind.
Status Driver::stop_waiting() {
  for (Driven& record : records_) {
    if (!record.waiting) continue;
    record.waiting = false;
    batch_.compare_swap(record.access->header.plus(kOffsetOfWaiter), context_.stamps.ctts, 0,
                        &record.look->cas_seen);
  }
  return batch_.execute();
}

Status drive(StageContext& context, Rule rule, std::span<Driven> records) {
  return Driver(context, rule, records).run();
}

void note_read(const StageContext& context, const Driven& record, Access& access) {
  const bool absent = (record.accepted.flags & kFlagDeleted) != 0;
  access.read = true;
  access.locked_wts = record.accepted.wts;
  // Under timestamp ordering an absence is as of the transaction's time, whichever version shows
  // it.
  access.read_wts =
      absent && context.rules.reads_at_ctts ? context.stamps.just_before() : record.accepted.wts;
  if (!access.lease_locked) access.lease = record.look->first.sundial;
}

Status outcome_of(std::span<const Driven> records) {
  bool stale = false;
  for (const Driven& record : records) {
    if (record.end == Driven::End::kAbort) return aborted(record.reason);
    stale = stale || record.end == Driven::End::kStale;
  }
  return stale ? aborted(AbortReason::kStaleLocation) : Status();
}

}  // namespace rdmacc
