#include "engine/txn/rule/record_bytes.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {

Status Transaction::look_up_many(TableId table, std::span<const std::string_view> keys,
                                 std::span<KeyState*> states) {
  CHECK(keys.size() == states.size());
  CHECK(started() && !prepared_);
  Wanted wanted;
  for (size_t i = 0; i < keys.size(); i++) {
    KeyState& state = keys_.touch(table, keys[i]);
    states[i] = &state;
    if (state.base != KeyState::Base::kUnknown || state.asked || take_from_scan(state)) continue;
    state.asked = true;
    wanted.push_back(&state);
  }
  if (wanted.empty()) return Status();
  scratch_.reset();
  StageContext stage = context(scratch_);
  const uint64_t start_ns = begin_stage(reading_stage());
  const bool looks_first =
      begins_with_first_look(*parameters_.rules, parameters_.plan) && accesses_.only_looks_up();
  Status status;
  if (looks_first) status = find_at_first_look(stage, wanted);
  if (status.ok() && !wanted.empty()) {
    status = find(stage, {wanted.data(), wanted.size()}, looks_first);
  }
  for (KeyState* state : wanted) state->asked = false;
  time_stage(reading_stage(), start_ns);
  note_failure(status);
  return status;
}

// True: a scan has just returned the row, which is part of the read set and of the history with it.
bool Transaction::take_from_scan(KeyState& state) {
  if (scanned_batch_.expired() || parameters_.rules->commits_in_order) return false;
  const ScannedBatch::Place* place =
      scanned_batch_.lock()->find(state.table, state.key, state.hash);
  std::string_view key, row;
  if (place == nullptr || !split_record(place->tuple->record, key, row)) return false;
  const ScannedTuple* tuple = place->tuple;
  CHECK(tuple->kept != nullptr);
  if (tuple->kept->table != state.table) return false;  // as a hostile node may have answered
  state.base = KeyState::Base::kExists;
  state.tuple = tuple->kept;
  state.gap = place->gap;
  state.overflow = tuple->overflow;
  keys_.keep_row(state, row);
  state.version = tuple->access.read_wts;
  return true;
}

// One Access per header. Seeing another version than before means that the transaction has lost
// already: nothing consistent can come of it. What was read or is locked keeps its identity; of
// what was only located the latest look-up knows best, but it was for one key: before an entry is
// placed or cleared in a group, the group's header is asked for each key again, under its lock
// (lock.cc).
Status Transaction::merge(const Access& seen, Access** merged) {
  CHECK(!seen.header.null());
  Access* known = accesses_.find(seen.header);
  const Status sound = accesses_.ambiguous() ? aborted(AbortReason::kStaleLocation) : Status();
  *merged = known != nullptr ? known : &accesses_.add(seen);
  if (known == nullptr) return sound;
  const bool locked_before = known->locked;
  const bool fixed = known->read || known->held();
  known->locked = known->locked || seen.locked;
  known->reader_count += seen.reader_count;
  if (seen.locked && !locked_before) known->locked_wts = seen.locked_wts;
  if (!sound.ok()) return sound;
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
    const bool parses = note_row(work.record, work.overflow, *tuple, state);
    return parses ? Status() : Status(Code::kCorrupt, "a record");
  }
  if (missing) note_absence(work.overflow, tuple, met ? nullptr : gap, state);
  return Status();
}

// By a tombstone, which an insert revives, or else by its group's gap header.
void Transaction::note_absence(uint64_t overflow, Access* tombstone, Access* gap, KeyState& state) {
  state.base = KeyState::Base::kAbsent;
  state.gap = gap;
  state.tuple = tombstone;
  state.overflow = overflow;
  reads_++;
  scanned_ = true;  // more than one header may have decided it: always validated
  event(HistoryOp::kMiss, state.table, state.key, (gap != nullptr ? gap : tombstone)->read_wts);
}

// False: it does not parse, as after an answer that was cut short.
inline bool Transaction::note_row(std::string_view record, uint64_t overflow, Access& tuple,
                                  KeyState& state) {
  std::string_view key, row;
  if (!split_record(record, key, row)) return false;
  state.base = KeyState::Base::kExists;
  state.tuple = &tuple;
  state.overflow = overflow;
  keys_.keep_row(state, row);
  state.version = tuple.read_wts;
  reads_++;
  event(HistoryOp::kRead, state.table, state.key, state.version);
  return true;
}

// The keys that are left in `wanted` are not found yet. Their accesses are not the transaction's.
Status Transaction::find_at_first_look(StageContext& stage, Wanted& wanted) {
  boost::container::small_vector<SoughtKey, 16> looks;
  looks.reserve(wanted.size());
  for (KeyState* state : wanted) {
    looks.push_back({state->table, state->hash, state->key, &accesses_.add_empty()});
  }
  Status status = look_first(stage, {looks.data(), looks.size()});
  size_t left = 0;
  for (size_t i = 0; i < looks.size(); i++) {
    const SoughtKey& look = looks[i];
    if (look.result == SoughtKey::Result::kFound) {
      wanted[i]->asked = false;
      const bool parses = note_row(look.record, look.overflow, *look.access, *wanted[i]);
      CHECK(parses);  // it was compared
      continue;
    }
    if (look.result == SoughtKey::Result::kMissing) {
      wanted[i]->asked = false;
      note_absence(look.overflow, look.access, nullptr, *wanted[i]);
      continue;
    }
    if (look.result == SoughtKey::Result::kAborted && status.ok()) status = aborted(look.reason);
    wanted[left++] = wanted[i];
  }
  if (left > 0) keep_locks_of_lost({looks.data(), looks.size()});
  wanted.resize(left);
  return status;
}

// What a look that found no row has still locked, once for each header.
void Transaction::keep_locks_of_lost(std::span<const SoughtKey> looks) {
  boost::container::small_vector<Access, 4> held;
  for (const SoughtKey& look : looks) {
    if (look.result == SoughtKey::Result::kFound || look.result == SoughtKey::Result::kMissing) {
      continue;
    }
    if (look.access->held()) held.push_back(*look.access);
    *look.access = Access{};
  }
  Access* merged = nullptr;
  for (const Access& access : held) {
    const Status status = merge(access, &merged);
    static_cast<void>(status);  // the transaction has lost anyhow
  }
}

// The whole search, for keys that the first look has not found.
Status Transaction::find(StageContext& stage, std::span<KeyState* const> wanted, bool looked) {
  boost::container::small_vector<KeyWork, 16> works;
  works.reserve(wanted.size());
  for (const KeyState* state : wanted) {
    KeyWork& work = works.emplace_back();
    work.table = state->table;
    work.hash = state->hash;
    work.key = state->key;
    work.looked = looked;
  }
  Status status = carry_out_find(stage, parameters_.plan, {works.data(), works.size()});
  for (size_t i = 0; i < works.size(); i++) {
    const Status noted = note_found(works[i], *wanted[i]);
    if (status.ok()) status = noted;
  }
  return status;
}

}  // namespace rdmacc
