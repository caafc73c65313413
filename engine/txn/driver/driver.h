#pragma once
#include <algorithm>

#include "engine/txn/driver/driver_base.h"

// The rule driver's own code, compiled for each rule in its protocol's file: the rule's answer is
// then known where its verbs are added, and most of both folds away.

namespace rdmacc {

// `RuleType` is called as a Rule is.
template <typename RuleType>
class Driver : DriverBase {
 public:
  Driver(StageContext& context, RuleType rule, std::span<RecordState> records)
      : DriverBase(context, records), rule_(rule) {}

  Status run() {
    if (!batch_.in_place()) return stop_waiting_after(rounds());
    return stop_waiting_after(
        with_port_in_place(context_, [this](auto& port) { return this->one_by_one(port); }));
  }
  // As run(), of one record whose first rounds were carried out in place.
  Status go_on_with(RecordState& record, const InPlaceRounds& begun) {
    return stop_waiting_after(go_on(record, begun));
  }
  bool aborted() const { return aborted_; }

 private:
  template <typename Port>
  Status one_by_one(Port& port);
  template <typename Port>
  Status alone(Port& port, RecordState& record, uint64_t& observed);
  Status go_on(RecordState& record, const InPlaceRounds& begun);
  Status look_again(RecordState& record, Step step, int looks);
  Status rounds();
  Step begin(RecordState& record);
  void judge(RecordState& record, Step& step, int looks);
  void decide(RecordState& record, Step& step, int looks);
  Status stop_waiting_after(const Status& status) {
    if (!waits_) return status;
    const Status cleared = stop_waiting();
    // A waiter word that may be left outranks the rest: it has to be looked for.
    return status.ok() || cleared.code() == Code::kUnavailable ? cleared : status;
  }

  const RuleType rule_;
};

template <typename RuleType>
template <typename Port>
[[gnu::flatten]] Status Driver<RuleType>::one_by_one(Port& port) {
  if (context_.rules.skips_locked) RDMACC_RETURN_IF_ERROR(take_snapshots());
  if (records_.size() > 1) {
    for (const RecordState& record : records_) {
      port.prefetch(record.access->header, sizeof(Header) + record.record_bytes);
    }
    port.await_prefetched();
  }
  uint64_t observed = 0;
  Status status;
  for (RecordState& record : records_) {
    status = alone(port, record, observed);
    if (aborted_ || !status.ok()) break;
  }
  context_.engine.clock.observe(observed);
  port.end_round();
  return status;
}

template <typename RuleType>
template <typename Port>
[[gnu::always_inline]] inline Status Driver<RuleType>::alone(Port& port, RecordState& record,
                                                             uint64_t& observed) {
  using End = InPlaceRounds::End;
  DCHECK(record.access != nullptr && !record.access->header.null() && pending(record));
  if (context_.is_cancelled()) return Status(Code::kCancelled);
  if (record.record == nullptr && record.record_bytes > 0) {
    RDMACC_RETURN_IF_ERROR(make_room(record, Step::attempt(kReadRecord)));
  }
  const auto slot = port.find(record.access->header, kOffsetOfRecord + record.record_bytes);
  if (port.lost(slot)) return DoorbellBatch::unreachable();
  constexpr int kRounds = 3;  // some rules look before they lock
  InPlaceRounds first;
  const End end = run_rounds<kRounds>(port, rule_, context_, slot, *record.access, record.record,
                                      record.record_bytes, first);
  record.newly_locked = first.newly_locked;
  switch (end) {
    case End::kNothing:
      record.end = RecordState::End::kDone;
      return Status();
    case End::kAccepted:
      record.end = RecordState::End::kDone;
      record.accepted = first.accepted(observed);
      if (context_.rules.skips_locked) *record.snapshot = first.seen;
      if (!first.waiting) return Status();
      break;
    case End::kStale:
      record.end = RecordState::End::kStale;
      if (!first.waiting) return Status();
      break;
    case End::kLost:
      return DoorbellBatch::unreachable();
    case End::kOpen:
      break;
  }
  const InPlaceRounds begun = first;  // what others see of it does not make it live in memory
  return go_on(record, begun);
}

template <typename RuleType>
[[gnu::noinline]] Status Driver<RuleType>::go_on(RecordState& record, const InPlaceRounds& begun) {
  if (record.snapshot == nullptr) {
    record.snapshot = context_.arena.allocate_array<HeaderSnapshot>(1);
    if (record.snapshot == nullptr) return cannot_go_on(begun);
  }
  HeaderSnapshot& snapshot = *record.snapshot;
  snapshot = begun.seen;
  snapshot.versions = nullptr;
  snapshot.history = record.history;
  if (begun.latest != kNoVerbs) {
    record.latest = begun.latest == kPostRead ? &snapshot.post_read : &snapshot.pre_read;
  }
  record.newly_locked = begun.newly_locked;
  record.waiting = begun.waiting;
  waits_ = waits_ || begun.waiting;
  if (!pending(record)) return Status();
  Step step = begun.next;
  decide(record, step, begun.rounds);
  return pending(record) ? look_again(record, step, begun.rounds) : Status();
}

template <typename RuleType>
[[gnu::noinline]] Status Driver<RuleType>::look_again(RecordState& record, Step step, int looks) {
  for (; pending(record); looks++) {
    if (context_.is_cancelled()) return Status(Code::kCancelled);
    if (step.verdict == Verdict::kLookAgain) pause(std::span(&step, 1), looks);
    if (lacks_room(record, step)) RDMACC_RETURN_IF_ERROR(make_room(record, step));
    post(record, step);
    RDMACC_RETURN_IF_ERROR(batch_.settle());
    judge(record, step, looks);
  }
  return batch_.execute();
}

template <typename RuleType>
Status Driver<RuleType>::rounds() {
  RDMACC_RETURN_IF_ERROR(take_snapshots());
  boost::container::small_vector<Step, 16> steps;
  steps.reserve(records_.size());
  size_t open = 0;
  for (RecordState& record : records_) {
    steps.push_back(begin(record));
    if (pending(record)) open++;
  }
  if (!context_.engine.worker.scheduler().savings().one_cas) {
    RDMACC_RETURN_IF_ERROR(look_before_locking({steps.data(), steps.size()}));
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
    if (all_wait) pause({steps.data(), steps.size()}, looks);
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
  decide(record, step, looks);
}

// What the rule has answered.
template <typename RuleType>
void Driver<RuleType>::decide(RecordState& record, Step& step, int looks) {
  if (step.verdict == Verdict::kDone) return accept(record, step);
  if (step.verdict == Verdict::kTry && looks < kRoundsMax) return;
  const bool waits = step.verdict == Verdict::kLookAgain && looks < context_.rules.looks_max;
  if (waits && !holder_stands_still(record, looks)) return;
  if (waits_for_holder(record, step)) {
    step = begin(record);
    return;
  }
  give_up(record, step);
}

// One driver for every rule.
Status drive_by_pointer(StageContext& context, Rule rule, std::span<RecordState> records);

#ifdef __SANITIZE_ADDRESS__
// A driver for each rule would take a third of the time that such a build takes, and access no
// memory in another way.
template <Rule kRule>
constexpr StageRule::Drive drive_fixed = drive_by_pointer;
#else
template <Rule kRule>
Status drive_fixed(StageContext& context, Rule, std::span<RecordState> records) {
  const auto rule = [](const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
    return kRule(access, seen, txn);
  };
  return Driver(context, rule, records).run();
}
#endif

template <Rule kRule>
constexpr StageRule driven_by{kRule, drive_fixed<kRule>};

}  // namespace rdmacc
