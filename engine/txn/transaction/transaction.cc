#include "engine/txn/transaction/transaction.h"

#include "rdma/base/check.h"

namespace rdmacc {

Transaction::Transaction(CoordinatorState& coordinator, const TxnParameters& parameters)
    : coordinator_(coordinator),
      parameters_(parameters),
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
                      &place_};
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
                                                    counters_, gate_entry_));
  exclusive_ = gate_entry_.exclusive;
  coordinator_.engine.enter_era(era_of(gate_entry_.epoch));
  if (exclusive_) coordinator_.stats.exclusive++;
  const uint64_t ctts = coordinator_.engine.clock.next();
  const bool older = parameters_.rules->keeps_age && before.age() != 0;
  stamps_.ctts = older ? before.age() : ctts;
  CHECK(locked_exclusively(stamps_.ctts));
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
  end.exclusive = exclusive_;
  return end;
}

void Transaction::time_stage(Stage stage, uint64_t start_ns) {
  const Primitive primitive = parameters_.plan.of(stage);
  const uint64_t ns = coordinator_.engine.worker.endpoint().now_ns() - start_ns;
  coordinator_.stats.stage_ns[stage_index(stage)][static_cast<size_t>(primitive)].record(ns);
  if (coordinator_.observer == nullptr) return;
  coordinator_.observer->stage_done(parameters_.rules->protocol, stage, primitive, ns);
}

void Transaction::note_failure(const Status& status) {
  if (status.ok()) return;
  if (failure_.ok()) failure_ = status;
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

// One Access per header. Seeing another version than before means that the transaction has lost
// already: nothing consistent can come of it. What was read or is locked keeps its identity; of
// what was only located the latest look-up knows best, but it was for one key: before an entry is
// placed or cleared in a group, the group's header is asked for each key again, under its lock
// (lock.cc).
Status Transaction::merge(const Access& seen, Access** merged) {
  CHECK(!seen.header.null());
  Access*& known = access_of_.at(seen.header.bits);
  if (known == nullptr) {
    accesses_.push_back(seen);
    *merged = known = &accesses_.back();
    return Status();
  }
  *merged = known;
  const bool locked_before = known->locked;
  const bool fixed = known->read || known->held();
  known->locked = known->locked || seen.locked;
  known->reader_count += seen.reader_count;
  if (seen.locked && !locked_before) known->locked_wts = seen.locked_wts;
  if (fixed && known->incarnation != 0 && seen.incarnation != 0 &&
      seen.incarnation != known->incarnation) {
    return aborted(AbortReason::kStaleLocation);
  }
  if (seen.read) {
    if (known->read && known->read_wts != seen.read_wts) {
      return aborted(seen.gap ? AbortReason::kGapChanged : AbortReason::kVersionChanged);
    }
    // The first lease will do: it is of the same version.
    if (!known->read && !known->lease_locked) known->lease = seen.lease;
    known->read = true;
    known->read_wts = seen.read_wts;
  }
  if (!fixed) {
    known->incarnation = seen.incarnation;
    known->key_hash = seen.key_hash;
    known->depth = seen.depth;
  }
  return Status();
}

Status Transaction::note_found(const KeyWork& work, KeyState& state) {
  Access* gap = nullptr;
  Status status;
  const bool missing = work.result == KeyWork::Result::kMissing;
  const bool met =
      work.result == KeyWork::Result::kFound || (missing && !work.access.header.null());
  if (work.gap.held() || (missing && !met && !work.gap.header.null())) {
    status = merge(work.gap, &gap);
  }
  Access* tuple = nullptr;
  if (work.access.held() || met) {
    Status merged = merge(work.access, &tuple);
    if (status.ok() && !merged.ok()) status = std::move(merged);
  }
  RDMACC_RETURN_IF_ERROR(status);
  if (work.result == KeyWork::Result::kAborted) return aborted(work.reason);
  if (work.result == KeyWork::Result::kFound) {
    std::string_view key, row;
    if (!split_record(work.record, key, row)) return Status(Code::kCorrupt, "a record");
    state.base = KeyState::Base::kExists;
    state.tuple = tuple;
    state.overflow = work.overflow;
    keys_.keep_row(state, row);
    state.version = tuple->read_wts;
    reads_++;
    event(HistoryOp::kRead, state.table, state.key, state.version);
  } else if (missing) {
    state.base = KeyState::Base::kAbsent;
    state.gap = met ? nullptr : gap;
    state.tuple = tuple;  // a tombstone: an insert revives it
    state.overflow = work.overflow;
    reads_++;
    scanned_ = true;  // more than one header may have decided it: always validated
    event(HistoryOp::kMiss, state.table, state.key, (met ? tuple : gap)->read_wts);
  }
  return Status();
}

Status Transaction::look_up_many(TableId table, std::span<const std::string_view> keys,
                                 std::span<KeyState*> states) {
  CHECK(keys.size() == states.size());
  CHECK(started() && !prepared_);
  boost::container::small_vector<KeyWork, 16> works;
  boost::container::small_vector<KeyState*, 16> wanted;
  for (size_t i = 0; i < keys.size(); i++) {
    const uint64_t hash = hash_key(table, keys[i]);
    states[i] = &keys_.touch(table, keys[i], hash);
    if (states[i]->base != KeyState::Base::kUnknown || states[i]->asked) continue;
    states[i]->asked = true;
    if (works.size() == works.capacity()) works.reserve(keys.size());
    KeyWork& work = works.emplace_back();
    work.table = table;
    work.hash = hash;
    work.key = states[i]->key;
    wanted.push_back(states[i]);
  }
  if (works.empty()) return Status();
  scratch_.reset();
  StageContext stage = context(scratch_);
  const uint64_t start_ns = coordinator_.engine.worker.endpoint().now_ns();
  Status status = carry_out_find(stage, parameters_.plan, {works.data(), works.size()});
  time_stage(parameters_.rules->locks_what_it_reads() ? Stage::kLock : Stage::kRead, start_ns);
  for (size_t i = 0; i < works.size(); i++) {
    wanted[i]->asked = false;
    Status noted = note_found(works[i], *wanted[i]);
    if (status.ok() && !noted.ok()) status = std::move(noted);
  }
  note_failure(status);
  return status;
}

KeyState& Transaction::touch_unchecked(TableId table, std::string_view key) {
  KeyState& state = keys_.touch(table, key);
  if (state.base == KeyState::Base::kUnknown) state.base = KeyState::Base::kUnchecked;
  return state;
}

Status Transaction::write(KeyState& state, bool deleted, std::string_view row) {
  DCHECK(state.base != KeyState::Base::kUnknown);
  DCHECK(state.own == nullptr || state.own->level <= level_);
  const uint64_t bytes = row.size() + state.key.size() + sizeof(KeyState);
  if (write_set_bytes_ + bytes > coordinator_.write_set_bytes_max) {
    return Status(Code::kNoSpace, "the transaction's write set is larger than " +
                                      std::to_string(coordinator_.write_set_bytes_max) + " bytes");
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
  write_set_bytes_ -= newest.row.size();
  keys_.replace_newest(state, row);
  return Status();
}

Status Transaction::unvalidated_read(TableId table, std::string_view key, bool& found,
                                     std::string_view& row) {
  UnvalidatedReadCache& unvalidated_reads = coordinator_.unvalidated_reads;
  if (const std::string* known = unvalidated_reads.find(table, key)) {
    found = true;
    row = *known;
    return Status();
  }
  scratch_.reset();
  const StageContext stage = context(scratch_);
  const Status status = unvalidated_read_key(stage, table, key, found, row);
  note_failure(status);
  if (status.ok() && found) unvalidated_reads.put(table, key, row);
  return status;
}

namespace {

Status scan_at_once(const StageContext& stage, std::span<GroupWork> groups) {
  const ProtocolRules rules = no_wait_rules(stage.rules);
  StageContext at_once = stage.by(rules);
  return scan_groups(at_once, groups, 0);
}

}  // namespace

Status Transaction::scan(std::span<GroupWork> groups, VerbArena& arena, ScanMode mode) {
  CHECK(started() && !prepared_);
  if (mode == ScanMode::kSkipLocked) return look_at(groups, arena);
  StageContext stage = context(arena);
  const uint64_t start_ns = coordinator_.engine.worker.endpoint().now_ns();
  Status status = mode == ScanMode::kNoWait ? scan_at_once(stage, groups)
                                            : carry_out_scan(stage, parameters_.plan, groups);
  time_stage(parameters_.rules->locks_what_it_reads() ? Stage::kLock : Stage::kRead, start_ns);
  scanned_ = scanned_table_ = true;
  for (GroupWork& group : groups) {
    Access* access = nullptr;
    if (!group.gap.header.null() && (group.gap.held() || group.gap.read)) {
      const Status merged = merge(group.gap, &access);
      if (status.ok()) status = merged;
    }
    if (parameters_.rules->commits_in_order && group.result == GroupWork::Result::kDone) {
      OrderedGroup& ordered = ordered_groups_.emplace_back(OrderedGroup{group.gap});
      for (const ScannedTuple& tuple : group.tuples) {
        ordered.add(tuple.access.header.offset(), tuple.access.incarnation, tuple.access.read_wts);
      }
    }
    for (ScannedTuple& tuple : group.tuples) {
      if (!tuple.access.held() && group.result != GroupWork::Result::kDone) continue;
      const Status merged = merge(tuple.access, &access);
      if (status.ok()) status = merged;
      reads_++;
    }
    if (group.result == GroupWork::Result::kAborted && status.ok()) {
      status = aborted(group.reason);
    }
  }
  note_failure(status);
  return status;
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
      write_set_bytes_ -= state.own->row.size() + state.key.size() + sizeof(KeyState);
      keys_.forget_newest(state);
    }
  }
  if (level > 0) level_ = std::min(level_, level - 1);
}

void Transaction::release(uint32_t level) {
  CHECK(level > 0);
  keys_.release(level);
  level_ = std::min(level_, level - 1);
}

}  // namespace rdmacc
