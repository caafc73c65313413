#include "engine/txn/transaction/transaction.h"

#include "rdma/base/check.h"

namespace rdmacc {

Transaction::Transaction(CoordinatorState& coordinator, const TxnParameters& parameters)
    : coordinator_(coordinator),
      parameters_(parameters),
      timed_(coordinator.observer != nullptr ? 1 : coordinator.timed.draw_weight()),
      frame_(coordinator.frames.take()),
      scratch_(frame_->scratch),
      writes_(frame_->writes),
      record_(frame_->record),
      placements_(frame_->placements),
      evicted_(frame_->evicted) {
  CHECK(parameters.rules != nullptr);
}

// A worker that dies takes its transactions with it. Whether one whose log had begun is committed
// is decided by its log, which others read.
Transaction::~Transaction() {
  if (started() && log_begun_) {
    note_writes();
    report(HistoryOutcome::kUnknown);
  }
  coordinator_.frames.give_back(std::move(frame_));
}

StageContext Transaction::context(VerbArena& arena, bool cancellable) {
  return StageContext{coordinator_.engine,
                      *parameters_.rules,
                      stamps_,
                      arena,
                      counters_,
                      allocation_counters_,
                      cancellable ? parameters_.cancelled : nullptr,
                      &place_,
                      &held_by_};
}

Status Transaction::start(const Restart& before) {
  CHECK(!started());
  Admission& admission = coordinator_.admission;
  if (before.lost_to() != 0) admission.wait_for(before.lost_to());
  Endpoint& endpoint = coordinator_.engine.worker.endpoint();
  start_us_ = endpoint.now_us();
  const auto protocol = static_cast<ProtocolId>(parameters_.rules->protocol);
  if (shares_locks()) coordinator_.gate.will_share();
  const bool exclusive = parameters_.exclusive || before.wants_exclusive();
  const auto enter = exclusive ? &Gate::enter_exclusive : &Gate::enter;
  const uint64_t deadline_us = start_us_ + parameters_.gate_timeout_us;
  RDMACC_RETURN_IF_ERROR((coordinator_.gate.*enter)(protocol, deadline_us, parameters_.cancelled,
                                                    counters_, gate_entry_, start_us_));
  exclusive_ = gate_entry_.exclusive;
  coordinator_.engine.enter_era(era_of(gate_entry_.epoch));
  if (exclusive_) coordinator_.stats.exclusive++;
  TimestampClock& clock = coordinator_.engine.clock;
  const uint64_t ctts =
      parameters_.rules->registers_readers ? coordinator_.txn_slots.draw(clock) : clock.next();
  const bool older = parameters_.rules->keeps_age && before.age() != 0;
  stamps_.ctts = older ? before.age() : ctts;
  stamps_.reads_to_write = before.found_locked();
  CHECK(locked_exclusively(stamps_.ctts));
  if (locked_early(stamps_.ctts)) {
    coordinator_.txn_slots.give_back(stamps_.ctts);
    coordinator_.gate.leave(gate_entry_);
    return Status(Code::kUnavailable, "the clock has run out");
  }
  admission.begin(place_, stamps_.ctts);
  if (admission.crowded()) coordinator_.engine.worker.scheduler().stay(true);
  return Status();
}

// No age when a lock may still stand: it would pass for one of the next attempt.
AttemptEnd Transaction::end() const {
  AttemptEnd end;
  end.lost = reason_of(failure_) != AbortReason::kNone && !outcome_unknown_;
  if (end.lost && parameters_.rules->keeps_age && !lock_state_unknown_) end.age = stamps_.ctts;
  if (end.lost) end.lost_to = place_.lost_to;
  end.scanned = scanned_table_;
  end.missed = scanned_;
  end.found_locked = reason_of(failure_) == AbortReason::kLockHeld;
  end.exclusive = exclusive_;
  return end;
}

uint64_t Transaction::begin_timed_stage(Stage stage) {
  if (coordinator_.observer != nullptr) coordinator_.observer->stage_begins(stage);
  return stage_end_ns_ != 0 ? stage_end_ns_ : coordinator_.engine.worker.endpoint().now_ns();
}

void Transaction::end_timed_stage(Stage stage, uint64_t start_ns) {
  stage_end_ns_ = coordinator_.engine.worker.endpoint().now_ns();
  note_stage_time(stage, stage_end_ns_ - start_ns);
}

// Of stages that one request has carried out each has its share: what chooses among primitives
// takes the times of stages for independent.
void Transaction::time_stages(std::initializer_list<Stage> stages, uint64_t start_ns) {
  if (timed_ == 0) return;
  stage_end_ns_ = coordinator_.engine.worker.endpoint().now_ns();
  for (const Stage stage : stages) {
    note_stage_time(stage, (stage_end_ns_ - start_ns) / stages.size());
  }
}

void Transaction::note_stage_time(Stage stage, uint64_t ns) {
  const Primitive primitive = parameters_.plan.of(stage);
  coordinator_.stats.stage_ns[stage_index(stage)][static_cast<size_t>(primitive)].record(ns,
                                                                                         timed_);
  if (coordinator_.observer == nullptr) return;
  coordinator_.observer->stage_done(parameters_.rules->protocol, stage, primitive, ns);
}

void Transaction::tell_observer(HistoryOutcome outcome) {
  coordinator_.observer->transaction_done(
      {.protocol = parameters_.rules->protocol,
       .plan = parameters_.plan.canonical(parameters_.rules->stages),
       .committed = outcome == HistoryOutcome::kCommitted,
       .reason = reason_of(failure_),
       .verbs = counters_,
       .nodes = count_nodes()});
}

// More headers than these are on all nodes, nearly always.
uint32_t Transaction::count_nodes() const {
  constexpr size_t kHeadersMax = 64;
  boost::container::small_vector<NodeId, 16> nodes;
  size_t left = kHeadersMax;
  const auto note = [&](GlobalAddress header) {
    if (header.null()) return;
    if (std::find(nodes.begin(), nodes.end(), header.node()) == nodes.end()) {
      nodes.push_back(header.node());
    }
    --left;
  };
  for (const Access& access : accesses_) {
    if (left == 0) break;
    note(access.header);
  }
  accesses_.for_reads([&](TableId, std::span<const ScannedRead> some) {
    for (size_t i = 0; i < some.size() && left > 0; ++i) note(some[i].header);
    return left > 0;
  });
  return static_cast<uint32_t>(nodes.size());
}

void Transaction::note_first_failure(const Status& status) {
  if (failure_.ok()) failure_ = status;
  if (outcome_unknown_) return;  // its locks are left to resolution
  lock_state_unknown_ = lock_state_unknown_ || status.code() == Code::kUnavailable ||
                        reason_of(status) == AbortReason::kNodeRestarted;
}

Status Transaction::abort_on_conflict() {
  const Status lost = aborted(AbortReason::kVersionChanged);
  note_failure(lost);
  return lost;
}

void Transaction::note_event(HistoryOp op, TableId table, std::string_view key, uint64_t version) {
  HistoryEvent happened;
  happened.op = op;
  happened.table = table;
  happened.key = key;
  happened.version = version;
  history_.events.push_back(std::move(happened));
}

KeyState& Transaction::touch_unchecked(TableId table, std::string_view key) {
  KeyState& state = keys_.touch(table, key);
  if (state.base == KeyState::Base::kUnknown) state.base = KeyState::Base::kUnchecked;
  return state;
}

namespace {

[[gnu::cold]] Status too_much_written(uint64_t bytes_max) {
  return Status(Code::kWriteSetFull, "the transaction's write set is larger than " +
                                         std::to_string(bytes_max) + " bytes");
}

}  // namespace

Status Transaction::write(KeyState& state, bool deleted, std::string_view row) {
  DCHECK(state.base != KeyState::Base::kUnknown);
  DCHECK(state.own == nullptr || state.own->level <= level_);
  const uint64_t bytes = row.size() + state.key.size() + sizeof(KeyState);
  if (write_set_bytes_ + bytes > coordinator_.write_set_bytes_max) {
    return too_much_written(coordinator_.write_set_bytes_max);
  }
  write_set_bytes_ += bytes;
  own_writes_++;
  keys_.write(state, command_, level_, deleted, row);
  return Status();
}

Status Transaction::amend(KeyState& state, std::string_view row) {
  if (state.own == nullptr) return write(state, false, row);
  const OwnVersion& newest = *state.own;
  const bool same = newest.command == command_ && newest.level == level_ && !newest.deleted;
  // Full: write() says so.
  const bool fits = write_set_bytes_ + row.size() <= coordinator_.write_set_bytes_max;
  if (!same || !fits) return write(state, false, row);
  write_set_bytes_ += row.size();
  write_set_bytes_ -= newest.row().size();
  keys_.replace_newest(state, row);
  return Status();
}

Status Transaction::unvalidated_read(TableId table, std::string_view key, bool& found,
                                     std::string_view& row) {
  scratch_.reset();
  const StageContext stage = context(scratch_);
  const Status status = unvalidated_read_key(stage, table, key, found, row);
  note_failure(status);
  return status;
}

namespace {

Status scan_at_once(const StageContext& stage, std::span<ScanWork> groups) {
  const ProtocolRules rules = no_wait_rules(stage.rules);
  StageContext at_once = stage.by(rules);
  return scan_groups(at_once, groups, 0);
}

}  // namespace

// `first`: the scan meets no header that anything else has met (AccessSet::begin_scan). What an
// earlier attempt at its group has locked may be among its tuples twice.
Status Transaction::keep_scanned(const Access& seen, bool first, Access** kept) {
  *kept = first && !seen.held() ? accesses_.add_scanned(seen) : nullptr;
  return *kept != nullptr ? Status() : merge(seen, kept);
}

Status Transaction::keep_tuples(ScanWork& group, bool first) {
  Status status;
  for (ScannedTuple& tuple : group.tuples) {
    if (!tuple.access.held() && group.result != ScanWork::Result::kDone) continue;
    const Status merged = keep_scanned(tuple.access, first, &tuple.kept);
    if (status.ok()) status = merged;
    reads_++;
  }
  return status;
}

// What is read at one timestamp is not asked for again. Tuples are among the rows where the scan's
// rules could not take them at once; of those that are going to be written each has its access.
Status Transaction::keep_rows(ScanWork& group, const ScanOf& of) {
  if (group.result != ScanWork::Result::kDone) return Status();
  const bool validated = static_cast<bool>(parameters_.rules->validate);
  reads_ += group.rows.size();
  if (group.part == ScanWork::Part::kSlots && group.tuples.empty() &&
      validates_in_place(context(scratch_), parameters_.plan)) {
    keep_block(group);
    return Status();
  }
  for (ScannedRow& row : group.rows) {
    row.kept = validated ? accesses_.add_read(group.table, row.read, of.first) : nullptr;
  }
  if (of.to_write) return keep_tuples(group, of.first);
  reads_ += group.tuples.size();
  for (const ScannedTuple& tuple : group.tuples) {
    CHECK(!tuple.access.held());
    if (validated) accesses_.add_read(group.table, ScannedRead(tuple.access), of.first);
  }
  return Status();
}

void Transaction::keep_block(const ScanWork& group) {
  CHECK(parameters_.rules->leaves_no_trace_of_reads());
  if (group.rows.empty()) return;
  const SlotBlock& slots = group.slots;
  ReadBlock block{group.address(slots.first), slots.slots, slots.slot_bytes, slots.from_bits, {}};
  for (const ScannedRow& row : group.rows) block.sums.add(row.read.read_wts, row.read.key_hash);
  accesses_.add_block(group.table, block);
}

Status Transaction::keep_gap(ScanWork& group, const ScanOf& of) {
  if (group.gap.header.null() || !(group.gap.held() || group.gap.read)) return Status();
  if (group.takes_rows && !of.first) {
    accesses_.add_gap_again(group.gap);
    return Status();
  }
  Access* gap = nullptr;
  const Status merged = keep_scanned(group.gap, of.first, &gap);
  if (group.result == ScanWork::Result::kDone) group.kept_gap = gap;
  return merged;
}

Status Transaction::scan(std::span<ScanWork> groups, VerbArena& arena, const ScanOf& of) {
  CHECK(started() && !prepared_);
  begin_again();
  stage_end_ns_ = 0;
  if (of.mode == ScanMode::kSkipLocked) {
    return look_at(skipping_locked(*parameters_.rules), groups, arena);
  }
  if (of.mode == ScanMode::kAsStored) {
    return look_at(reading_as_stored(*parameters_.rules), groups, arena);
  }
  if (of.mode == ScanMode::kQuiet) return look_at_rest(groups, arena);
  StageContext stage = context(arena);
  stage.stamps.reads_to_write |= of.to_write;
  if (stage.rules.leases_by_clock) keep_lease(stage);
  const uint64_t start_ns = begin_stage(reading_stage());
  Status status = of.mode == ScanMode::kNoWait ? scan_at_once(stage, groups)
                                               : carry_out_scan(stage, parameters_.plan, groups);
  time_stage(reading_stage(), start_ns);
  scanned_ = scanned_table_ = true;
  for (ScanWork& group : groups) {
    const Status kept_gap = keep_gap(group, of);
    if (status.ok()) status = kept_gap;
    if (parameters_.rules->commits_in_order && group.result == ScanWork::Result::kDone) {
      OrderedGroup& ordered = ordered_groups_.emplace_back(OrderedGroup{group.gap});
      for (const ScannedTuple& tuple : group.tuples) {
        ordered.add(tuple.access.header.offset(), tuple.access.incarnation, tuple.access.read_wts);
      }
    }
    const Status kept = group.takes_rows ? keep_rows(group, of) : keep_tuples(group, of.first);
    if (status.ok()) status = kept;
    if (group.result == ScanWork::Result::kAborted && status.ok()) {
      status = aborted(group.reason);
    }
  }
  note_failure(status);
  return status;
}

// One lease for all that short transactions read, whose word says that it is their own. What was
// leased before under another stays noted so.
void Transaction::keep_lease(StageContext& stage) {
  uint64_t& lease = frame_->lease;
  const uint64_t now_us = stage.engine.worker.scheduler().recent_us();
  if (lease_end_us(lease) < now_us + kLeaseUs / 2) lease = stage.engine.leases.next();
  stage.stamps.lease = stamps_.lease = lease;
}

void Transaction::note_scanned(TableId table, const ScannedGroup& group) {
  HistoryEvent happened;
  happened.op = HistoryOp::kScan;
  happened.table = table;
  happened.groups.push_back(group);
  history_.events.push_back(std::move(happened));
}

void Transaction::rollback_to(uint32_t level) {
  CHECK(!prepared_);
  for (KeyState& state : keys_.all()) {
    while (state.own != nullptr && state.own->level >= level) {
      CHECK(own_writes_ > 0);
      own_writes_--;
      write_set_bytes_ -= state.own->row().size() + state.key.size() + sizeof(KeyState);
      keys_.forget_newest(state);
    }
    if (!state.locked_early || state.lock_level < level) continue;
    state.locked_early = false;
    if (!parameters_.rules->locks_what_it_reads()) to_let_go_.push_back(state.tuple);
  }
  if (level > 0) level_ = std::min(level_, level - 1);
}

void Transaction::release(uint32_t level) {
  CHECK(level > 0);
  keys_.release(level);
  level_ = std::min(level_, level - 1);
}

}  // namespace rdmacc
