// The commit pipeline of a transaction, stage by stage (docs/protocols.md §1, §5): allocate room,
// Lock, second ctts, Validate, Log (the commit point), Commit, Release.

#include <algorithm>

#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/driver/in_place_rounds.h"
#include "engine/txn/stages/release_held.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// How long an abort waits for a node to come back that may hold locks of the attempt.
constexpr uint64_t kNodeReturnUsMax = 15'000'000;
constexpr uint64_t kNodeReturnPauseUs = 10'000;
// What a Release takes that goes along with the Commit, which takes no longer for it: for what
// compares the stages' primitives, next to nothing.
constexpr uint64_t kAlongNs = 1;
// Of leases. What recovery assumes of them, and what readers are left, is beyond it and fits, too.
constexpr uint64_t kLogicalTimeMax = kSundialWtsMax / 2;

}  // namespace

// What each key's own writes come to, against what the engine had.
[[gnu::always_inline]] inline void Transaction::collect_writes() {
  CHECK(writes_.empty());
  if (!has_writes()) return;  // a range of rows has as many keys
  writes_.expect(own_writes_);
  for (KeyState& state : keys_.all()) {
    const OwnVersion* last = state.to_write();
    if (last == nullptr) continue;
    CHECK(state.base != KeyState::Base::kUnknown);
    PlannedWrite& planned =
        writes_.add(*parameters_.rules, {state.table, state.hash, state.key, last->deleted,
                                         last->row(), last->record(), state.tuple, state.overflow});
    if (planned.relinks()) planned.gap = state.gap;
  }
}

// Everything that is written is locked: when the transaction happens follows from that.
[[gnu::always_inline]] inline Status Transaction::fix_commit_time(StageContext& stage) {
  const ProtocolRules& rules = *parameters_.rules;
  if (rules.may_take_slot != nullptr) {
    for (const PlannedWrite& write : writes_.all()) {
      if (write.kind != WriteKind::kInsert || rules.may_take_slot(*write.tuple, stamps_)) continue;
      stage.engine.clock.observe(write.tuple->locked_wts);
      return aborted(AbortReason::kTooLate);
    }
  }
  if (rules.leases_by_clock) {
    stamps_.commit_tts =
        lease_word(stage.engine.worker.endpoint().clock_bounds().latest_us, kSharedLease);
    stage.stamps.commit_tts = stamps_.commit_tts;
  }
  if (rules.commits_at_least == nullptr) return Status();
  stamps_.commit_tts = std::max(stamps_.commit_tts, commits_behind_);
  for (const Access& access : accesses_) {
    stamps_.commit_tts = std::max(stamps_.commit_tts, rules.commits_at_least(access));
  }
  accesses_.for_reads([&](TableId table, std::span<const ScannedRead> some) {
    for (const ScannedRead& read : some) {
      const uint64_t at_least = rules.commits_at_least(read.access(table));
      stamps_.commit_tts = std::max(stamps_.commit_tts, at_least);
    }
    return true;
  });
  stage.stamps = stamps_;
  if (stamps_.commit_tts > kLogicalTimeMax) [[unlikely]]
    return Status(Code::kUnavailable, "the logical time has run out");
  return rules.registers_readers ? commit_behind_readers(stage) : Status();
}

[[gnu::always_inline]] inline Status Transaction::validate_reads(StageContext& stage) {
  const ProtocolRules& rules = *parameters_.rules;
  if (!rules.validate) return Status();
  if (rules.single_read_is_atomic && writes_.empty() && !scanned_ && reads_ <= 1) return Status();
  boost::container::small_vector<Access*, 32> reads;
  for (Access& access : accesses_) {
    if (!access.read || access.locked_to_commit()) continue;
    const bool holds =
        rules.holds_until_commit != nullptr && rules.holds_until_commit(access, stamps_);
    if (!holds) reads.push_back(&access);
  }
  if (reads.empty() && !accesses_.has_reads()) return Status();
  const uint64_t start_ns = begin_stage(rules.validation);
  const auto validate = [&](std::span<Access*> some) {
    return some.empty() ? Status() : carry_out_validate(stage, parameters_.plan, some);
  };
  Status status = validate({reads.data(), reads.size()});
  if (status.ok()) status = validate_scanned(stage, validate);
  if (!status.ok() && may_commit_before(status)) {
    status = validate_before_writers(stage, {reads.data(), reads.size()});
  }
  time_stage(rules.validation, start_ns);
  return status;
}

[[gnu::always_inline]] inline void Transaction::build_record() {
  CHECK(record_.writes.empty());
  TimestampClock& clock = coordinator_.engine.clock;
  for (const LockWork& work : writes_.locks()) clock.observe(work.access->locked_wts);
  for (const PlannedWrite& write : writes_.all()) clock.observe(write.tuple->locked_wts);
  record_.lock_ctts = stamps_.ctts;
  record_.stamp = parameters_.rules->reads_at_ctts ? stamps_.ctts : clock.next_in_order();
  record_.lease = stamps_.commit_tts;
  record_.protocol = static_cast<uint8_t>(parameters_.rules->protocol);
  writes_.list_writes(record_);
}

// False: there is nothing else to release, or it does not go along.
bool Transaction::commit_and_release(StageContext& stage, Status& status) {
  if (lock_state_unknown_ || !releases_with_commit(stage, parameters_.plan)) return false;
  boost::container::small_vector<Access*, 16> given;
  boost::container::small_vector<Held, 16> held;
  for (Access& access : accesses_) {
    if (held.size() == kCommitHeldMax) break;
    if (!access.to_give_back() || (access.write && !access.registered)) continue;
    given.push_back(&access);
    held.emplace_back(access);
    if (access.write) held.back().leave_lock();
  }
  if (held.empty()) return false;
  const uint64_t start_ns = begin_stage(Stage::kCommit);
  begin_stage(Stage::kRelease);
  status = carry_out_commit_and_release(stage, record_, {held.data(), held.size()}, evicted_,
                                        release_begun_);
  time_stage(Stage::kCommit, start_ns);
  if (timed_ != 0) note_stage_time(Stage::kRelease, kAlongNs);
  if (!status.ok()) return true;
  release_begun_ = false;
  for (Access* access : given) access->note_given_back();
  return true;
}

[[gnu::always_inline]] inline void Transaction::install_record(StageContext& stage) {
  CHECK(log_begun_ && !placements_.empty());
  Status status;
  if (!end_begun_) {
    if (!commit_and_release(stage, status)) {
      const uint64_t start_ns = begin_stage(Stage::kCommit);
      status = carry_out_commit(stage, parameters_.plan, record_, evicted_);
      time_stage(Stage::kCommit, start_ns);
    }
  } else if (!installed_) {
    status = Status(Code::kUnavailable);
  }
  const auto again = [&] {
    const InstallOptions options = install_options(stage, &evicted_, /*guarded=*/true);
    return install(stage.engine.worker, record_, options, counters_).ok();
  };
  if (!status.ok()) {
    stage_end_ns_ = 0;
    if (!try_again(again)) leave_to_resolution();
  }
  const auto unlocked = [](Access& access) { access.note_unlocked(); };
  for (const LockWork& work : writes_.locks()) unlocked(*work.access);
  for (const PlannedWrite& write : writes_.all()) unlocked(*write.tuple);
  coordinator_.log.applied(placements_);
}

// All are asked, without a branch for each: nearly always none has anything.
[[gnu::always_inline]] inline bool Transaction::holds_locks() const {
  bool any = false;
  for (const Access& access : accesses_) any |= access.to_give_back();
  return any;
}

void Transaction::release_locks(StageContext& stage) {
  const bool in_place = !lock_state_unknown_ && releases_in_place(stage, parameters_.plan);
  if (in_place && release_in_place(stage)) return;
  // A node that died under a request that may have locked is asked once it is back, if it ever is.
  Endpoint& endpoint = stage.engine.worker.endpoint();
  const uint64_t deadline_us = endpoint.now_us() + kNodeReturnUsMax;
  const auto wait_on = [&] {
    return !endpoint.taken_for_dead() && endpoint.now_us() < deadline_us;
  };
  while (lock_state_unknown_ && !release_everywhere(stage).ok() && wait_on()) {
    stage.engine.worker.scheduler().sleep_for(kNodeReturnPauseUs);
  }
  if (in_place && holds_locks()) lock_state_unknown_ = true;
  boost::container::small_vector<Held, 16> held;
  for (Access& access : accesses_) {
    if (!access.to_give_back()) continue;
    held.emplace_back(access);
    access.note_given_back();
  }
  if (held.empty()) return;
  const uint64_t start_ns = begin_stage(Stage::kRelease);
  // Locks that the nodes were asked to look for, or that are given back already, may be others' by
  // now. A reader count does not say whose it is, and an upgrade may have used it up: all of them
  // are left to the sweep.
  const std::span<const Held> all(held.data(), held.size());
  const bool certain = !lock_state_unknown_ && !release_begun_;
  Status status = certain ? carry_out_release(stage, parameters_.plan, all)
                          : release_accesses(stage, all, /*certain=*/false);
  reader_counts_unknown_ = !status.ok() || release_begun_;
  while (!status.ok() && wait_on()) {
    lock_state_unknown_ = true;
    stage.engine.worker.scheduler().sleep_for(kNodeReturnPauseUs);
    status = release_accesses(stage, all, /*certain=*/false);
  }
  time_stage(Stage::kRelease, start_ns);
}

// Where verbs are carried out in place each lock is given back where it is found. False: those of
// lost nodes are not.
[[gnu::always_inline]] inline bool Transaction::release_in_place(StageContext& stage) {
  constexpr size_t kPart = 64;  // between two looks at what else there is to do
  uint64_t start_ns = 0;
  size_t released = 0;
  const Status status = with_port_in_place(stage, [&](auto& port) {
    LostNodes lost;
    for (Access& access : accesses_) {
      if (!access.to_give_back()) continue;
      if (released == 0) start_ns = begin_stage(Stage::kRelease);
      if (++released % kPart == 0) port.end_round();
      // Where a lock was taken there is a header.
      const auto at = port.find_within(access.header, sizeof(Header));
      if (!release_held(port, access, at, lost)) continue;
      access.note_given_back();
    }
    if (released > 0) port.end_round();
    return lost.any() ? DoorbellBatch::unreachable() : Status();
  });
  if (status.ok() && released > 0) time_stage(Stage::kRelease, start_ns);
  return status.ok();
}

Status Transaction::commit() {
  CHECK(started() && !prepared_ && !guest_);
  stage_end_ns_ = 0;
  if (parameters_.rules->commits_in_order) return commit_in_order();
  scratch_.reset();
  StageContext stage = context(scratch_);
  const Status status = reach_commit_point(stage, Gtid{});
  if (status.ok()) finish_commit(stage);
  return status;
}

Status Transaction::prepare(Gtid gtid) {
  CHECK(!parameters_.rules->commits_in_order && !gtid.null() && !prepared_);
  stage_end_ns_ = 0;
  scratch_.reset();
  StageContext stage = context(scratch_);
  RDMACC_RETURN_IF_ERROR(reach_commit_point(stage, gtid));
  prepared_ = true;
  return writes_.empty() ? commit_prepared() : Status();
}

Status Transaction::commit_prepared() {
  CHECK(started() && prepared_);
  stage_end_ns_ = 0;
  StageContext stage = context(scratch_, /*cancellable=*/false);
  const Status status = writes_.empty() ? Status() : decide_log();
  if (!status.ok()) {
    note_writes();
    leave_locks_to_resolution();
    release_locks(stage);
    finish(HistoryOutcome::kUnknown);
    return status;
  }
  finish_commit(stage);
  if (!outcome_unknown_) return Status();
  return Status(Code::kUnavailable, "a prepared transaction is not installed everywhere");
}

// What a short commit touches is in the cache already, and others would only lose to it.
[[gnu::always_inline]] inline void Transaction::stay_until_the_end() {
  constexpr size_t kFewWrites = 64;
  if (writes_.all().size() <= kFewWrites) coordinator_.engine.worker.scheduler().stay(true);
}

// Everything up to the log; when that fails the transaction is aborted.
Status Transaction::reach_commit_point(StageContext& stage, Gtid gtid) {
  collect_writes();
  stay_until_the_end();
  Status status;
  if (writes_.relinks()) status = find_missing_gaps(stage);
  if (status.ok() && !writes_.empty()) status = writes_.allocate_room(stage, accesses_.list());
  stay_until_the_end();  // it may have waited for room
  if (status.ok() && !writes_.empty()) status = lock_writes(stage);
  if (status.ok()) status = fix_commit_time(stage);
  if (status.ok()) status = validate_reads(stage);
  if (status.ok() && !writes_.empty()) {
    build_record();
    record_.gtid = gtid;
    stage.cancelled = nullptr;  // a log that has begun is not left half done
    status = log_record(stage);
  }
  note_failure(status);
  if (!status.ok()) abort();
  return status;
}

void Transaction::finish_commit(StageContext& stage) {
  if (!writes_.empty()) {
    install_record(stage);
    writes_.keep_room();
    note_writes();
    // What is not installed still refers to what it would replace.
    if (!outcome_unknown_ && writes_.free_replaced(stage, evicted_)) stage_end_ns_ = 0;
  }
  release_locks(stage);
  care_for_full_groups();
  finish(HistoryOutcome::kCommitted);
}

void Transaction::abort() {
  if (!started()) return;
  if (guest_) return finish_as_guest();
  stage_end_ns_ = 0;
  StageContext stage = context(scratch_, /*cancellable=*/false);
  void_log();
  note_failure(writes_.give_back_room(stage));
  release_locks(stage);
  stage.engine.blocks.give_back_surplus(allocation_counters_);
  finish(outcome_unknown_ ? HistoryOutcome::kUnknown : HistoryOutcome::kAborted);
}

void Transaction::finish(HistoryOutcome outcome) {
  CHECK(started() && !guest_ && placements_.empty());
  CHECK(!holds_locks());
  coordinator_.engine.worker.scheduler().stay(false);
  place_.end();
  if (parameters_.rules->registers_readers) coordinator_.txn_slots.give_back(stamps_.ctts);
  coordinator_.admission.note_end(reason_of(failure_) != AbortReason::kNone);
  if ((shares_locks() || shares_rows_) && (lock_state_unknown_ || reader_counts_unknown_)) {
    coordinator_.gate.lost_reader_counts();
  }
  // Before anything waits: a worker that dies while it leaves the gate takes no outcome with it.
  report(outcome);
  log_begun_ = false;
  if (stays_inside_) {
    gate_entry_ = GateEntry{};
  } else {
    coordinator_.gate.leave(gate_entry_);
  }
  WorkerStats& stats = coordinator_.stats;
  if (outcome == HistoryOutcome::kCommitted) {
    stats.committed++;
  } else {
    stats.aborted++;
    stats.aborts[static_cast<size_t>(reason_of(failure_))]++;
  }
  if (coordinator_.observer != nullptr) tell_observer(outcome);
  stats.verbs.add(counters_);
  stats.allocation_verbs.add(allocation_counters_);
  stats.log_full_waits = coordinator_.log.full_waits();
  coordinator_.engine.worker.counters().add(counters_);
}

// Once: a worker may die when its transaction has noted them, and waits for a lost node.
void Transaction::note_writes() {
  if (coordinator_.history == nullptr || writes_noted_) return;
  writes_noted_ = true;
  for (const KeyState& state : keys_.all()) {
    const OwnVersion* last = state.to_write();
    if (last == nullptr) continue;
    const HistoryOp written =
        state.base == KeyState::Base::kExists ? HistoryOp::kWrite : HistoryOp::kInsert;
    const HistoryOp op = last->deleted ? HistoryOp::kDelete : written;
    event(op, state.table, state.key, record_.stamp);
  }
}

void Transaction::report(HistoryOutcome outcome) {
  if (coordinator_.history == nullptr) return;
  history_.ctts = stamps_.ctts;
  history_.worker = coordinator_.engine.worker.id();
  history_.protocol = parameters_.rules->protocol;
  history_.stages = parameters_.plan.canonical(parameters_.rules->stages).code();
  history_.outcome = outcome;
  history_.reason = reason_of(failure_);
  history_.start_us = start_us_;
  history_.end_us = coordinator_.engine.worker.endpoint().now_us();
  coordinator_.history->add(std::move(history_));
}

}  // namespace rdmacc
