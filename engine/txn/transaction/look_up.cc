#include <utility>

#include "engine/txn/rule/record_bytes.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr size_t kKeysToPrefetch = 32;

}  // namespace

Status Transaction::look_up_many(TableId table, std::span<const std::string_view> keys,
                                 std::span<KeyState*> states, bool to_write) {
  CHECK(keys.size() == states.size());
  CHECK(started() && !prepared_);
  const bool scanned = has_scanned();
  const KeyHash hash(table);
  size_t unknown = 0;
  // A large read set's places are in no cache.
  if (keys.size() >= kKeysToPrefetch) {
    for (const std::string_view key : keys) keys_.prefetch(table, key);
  }
  for (size_t i = 0; i < keys.size(); i++) {
    KeyState& state = keys_.touch(table, keys[i], hash(keys[i]));
    states[i] = &state;
    if (state.base != KeyState::Base::kUnknown || state.asked) continue;
    if (scanned && take_from_scan(state)) continue;
    state.asked = true;
    unknown++;
  }
  if (unknown == 0) return Status();
  if (unknown == keys.size()) return look_up(states, to_write);
  Wanted wanted;
  for (KeyState* state : states) {
    if (state->base == KeyState::Base::kUnknown && std::exchange(state->asked, false)) {
      wanted.push_back(state);
    }
  }
  return look_up({wanted.data(), wanted.size()}, to_write);
}

Status Transaction::look_up_one(TableId table, std::string_view key, bool to_write,
                                KeyState*& state) {
  CHECK(started() && !prepared_);
  state = &keys_.touch(table, key, hash_key(table, key));
  if (state->base != KeyState::Base::kUnknown) return Status();
  if (has_scanned() && take_from_scan(*state)) return Status();
  state->asked = true;
  return look_up(std::span(&state, 1), to_write);
}

// What the engine has of these keys, which differ.
Status Transaction::look_up(std::span<KeyState* const> wanted, bool to_write) {
  scratch_.reset();
  StageContext stage = context(scratch_);
  stage.stamps.reads_to_write |= to_write;
  if (stage.rules.leases_by_clock) keep_lease(stage);
  stage_end_ns_ = 0;
  const uint64_t start_ns = begin_stage(reading_stage());
  Status status;
  if (stage.rules.registers_readers) status = register_reads(stage);
  const bool looks_first = status.ok() &&
                           begins_with_first_look(*parameters_.rules, parameters_.plan) &&
                           accesses_.only_looks_up(wanted.front()->table);
  size_t left = wanted.size();
  if (looks_first) status = find_at_first_look(stage, wanted, left);
  if (left > 0) {
    Wanted unknown;
    for (KeyState* state : wanted) {
      if (state->base == KeyState::Base::kUnknown) unknown.push_back(state);
      state->asked = false;
    }
    if (status.ok()) status = find(stage, {unknown.data(), unknown.size()}, looks_first);
  }
  time_stage(reading_stage(), start_ns);
  note_failure(status);
  return status;
}

// True: a scan has just returned the row, which is part of the read set and of the history with it.
bool Transaction::take_from_scan(KeyState& state) {
  CHECK(!scanned_batch_.expired());
  const ScannedBatch::Found scanned =
      scanned_batch_.lock()->find(state.table, state.key, state.hash);
  if (!scanned.found()) return false;
  if (scanned.read != nullptr) {
    Access access = scanned.read->read.access(state.table);
    access.incarnation = scanned.read->incarnation;
    state.version = access.read_wts;
    state.tuple = &accesses_.take_read(access, scanned.read->kept);
    state.overflow = scanned.read->overflow;
  } else {
    Access* kept = scanned.tuple->kept;
    CHECK(kept != nullptr);
    if (kept->table != state.table) return false;  // as a hostile node may have answered
    state.version = scanned.tuple->access.read_wts;
    state.tuple = kept;
    state.overflow = scanned.tuple->overflow;
  }
  state.base = KeyState::Base::kExists;
  state.gap = scanned.gap;
  keys_.keep_row(state, scanned.row);
  return true;
}

KeyState* Transaction::known_to_write(TableId table, std::string_view key) {
  CHECK(started() && !prepared_);
  const uint64_t hash = hash_key(table, key);
  KeyState* state = keys_.find(table, key, hash);
  if (state != nullptr && state->base != KeyState::Base::kUnknown) return state;
  if (!has_scanned()) return nullptr;
  if (state == nullptr) state = &keys_.touch(table, key, hash);
  return take_from_scan(*state) ? state : nullptr;
}

// One Access per header. Seeing another version than before means that the transaction has lost
// already: nothing consistent can come of it. What was read or is locked keeps its identity; of
// what was only located the latest look-up knows best, but it was for one key: before an entry is
// placed or cleared in a group, the group's header is asked for each key again, under its lock
// (lock.cc).
Status Transaction::merge(const Access& seen, Access** merged) {
  CHECK(!seen.header.null());
  Access* known = accesses_.find_met(seen);
  const Status sound = accesses_.ambiguous() ? aborted(AbortReason::kStaleLocation) : Status();
  *merged = known != nullptr ? known : &accesses_.add(seen);
  if (known == nullptr) return sound;
  const bool locked_before = known->locked;
  const bool fixed = known->read || known->held();
  known->locked = known->locked || seen.locked;
  known->reader_count += seen.reader_count;
  // By a look that was given up, behind one that was believed: its writer may have looked between.
  registered_late_ |= seen.registered && !seen.read && known->read && !known->registered;
  known->registered = known->registered || seen.registered;
  if (seen.locked && !locked_before) {
    known->early = seen.early;
    known->locked_wts = seen.locked_wts;
  }
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
  if (known->incarnation == 0) known->incarnation = seen.incarnation;  // as a scan may leave it
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
  if (work.access.to_give_back() || met) {
    Status merged = merge(work.access, &tuple);
    if (status.ok() && !merged.ok()) status = std::move(merged);
  }
  RDMACC_RETURN_IF_ERROR(status);
  if (work.result == KeyWork::Result::kAborted) return aborted(work.reason);
  if (work.result == KeyWork::Result::kFound) {
    std::string_view key, row;
    // As after an answer that was cut short.
    if (!split_record(work.record, key, row)) return Status(Code::kCorrupt, "a record");
    note_row(row, /*kept=*/false, work.overflow, *tuple, state);
    return Status();
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

// `kept`: the row lies where it stays as long as the transaction.
inline void Transaction::note_row(std::string_view row, bool kept, uint64_t overflow, Access& tuple,
                                  KeyState& state) {
  state.base = KeyState::Base::kExists;
  state.tuple = &tuple;
  state.overflow = overflow;
  state.row = kept ? row : set_memory_.keep(row);
  state.version = tuple.read_wts;
  reads_++;
  event(HistoryOp::kRead, state.table, state.key, state.version);
}

// `left`: how many keys are not found yet. Their accesses are not the transaction's.
[[gnu::always_inline]] inline Status Transaction::find_at_first_look(
    StageContext& stage, std::span<KeyState* const> wanted, size_t& left) {
  auto table = stage.table(wanted.front()->table);
  if (!table.ok()) return table.status();
  for (size_t begin = 0; begin < wanted.size(); begin += kKeysAtOnce) {
    // Locks that a look has kept in vain have to be found by their address: the others are the
    // walk's.
    if (!accesses_.only_looks_up((*table)->id)) break;
    const auto some = wanted.subspan(begin, std::min(kKeysAtOnce, wanted.size() - begin));
    RDMACC_RETURN_IF_ERROR(look_first_at(stage, **table, some, left));
  }
  return Status();
}

[[gnu::always_inline]] inline Status Transaction::look_first_at(StageContext& stage,
                                                                CachedTable& table,
                                                                std::span<KeyState* const> wanted,
                                                                size_t& left) {
  Access* empty = accesses_.begin_look_up(table.id, wanted.size());
  for (KeyState* state : wanted) state->tuple = empty++;
  FirstLookOut out{set_memory_.room(wanted.size() * table.record_size)};
  Status status = look_first(stage, table, wanted, out);
  set_memory_.take_room(out.room);
  if (out.plain < wanted.size()) return note_looks(status, wanted, left);
  left -= wanted.size();
  reads_ += wanted.size();
  if (coordinator_.history != nullptr) {
    for (const KeyState* state : wanted) {
      event(HistoryOp::kRead, state->table, state->key, state->version);
    }
  }
  return status;
}

// Of looks that have not simply found each of the rows.
Status Transaction::note_looks(Status status, std::span<KeyState* const> looks, size_t& left) {
  const size_t before = left;
  for (KeyState* state : looks) {
    if (state->base == KeyState::Base::kUnknown) {
      if (state->lost != AbortReason::kNone && status.ok()) status = aborted(state->lost);
      continue;
    }
    left--;
    if (state->base == KeyState::Base::kExists) {
      note_row(state->row, state->in_room, state->overflow, *state->tuple, *state);
    } else {
      note_absence(state->overflow, state->tuple, nullptr, *state);
    }
  }
  if (before - left < looks.size()) keep_locks_of_lost(looks);
  return status;
}

// What a look that found no row has still locked, once for each header.
void Transaction::keep_locks_of_lost(std::span<KeyState* const> looks) {
  boost::container::small_vector<Access, 4> held;
  for (KeyState* look : looks) {
    if (look->base != KeyState::Base::kUnknown) continue;
    Access& access = *std::exchange(look->tuple, nullptr);
    if (access.to_give_back()) held.push_back(access);
    access = Access{};
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
