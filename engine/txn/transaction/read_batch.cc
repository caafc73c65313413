// Rows that are looked up by their keys and are most likely not asked for again, as those of a
// range: of each the transaction keeps no more than that it has read it.
#include <boost/container/static_vector.hpp>

#include "engine/api/read_batch.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {

namespace {

// Ranges that are read again and again by one transaction have a read for each time, where what is
// kept of a row is there once: 64 MB of them, and later ones are kept.
constexpr size_t kRowsReadMax = 2 << 20;

}  // namespace

// Where validation finds out that all is current at one moment, what is read twice need not be
// known to be the same. What is read at the transaction's time is kept: the version may be gone
// when it is asked for again.
bool Transaction::may_read_batch() const {
  const ProtocolRules& rules = *parameters_.rules;
  return rules.validates_moment && !rules.leases_by_clock &&
         begins_with_first_look(rules, parameters_.plan) && accesses_.rows_count() < kRowsReadMax;
}

Status Transaction::read_batch(TableId table, std::span<const std::string_view> keys,
                               ReadBatch& batch, std::span<RowView> out) {
  CHECK(started() && !prepared_ && may_read_batch());
  CHECK(keys.size() == out.size());
  begin_again();
  scratch_.reset();
  StageContext stage = context(scratch_);
  stage_end_ns_ = 0;
  const auto read = [&]() -> Status {
    auto cached = stage.table(table);
    if (!cached.ok()) return cached.status();
    batch.begin(keys.size(), (*cached)->record_size);
    for (size_t from = 0; from < keys.size(); from += kKeysAtOnce) {
      const size_t count = std::min(kKeysAtOnce, keys.size() - from);
      const KeysToRead some{keys.subspan(from, count), from};
      RDMACC_RETURN_IF_ERROR(read_some(stage, **cached, some, batch, out));
    }
    return Status();
  };
  const uint64_t start_ns = begin_stage(reading_stage());
  const Status status = read();
  time_stage(reading_stage(), start_ns);
  note_failure(status);
  return status;
}

Status Transaction::read_some(StageContext& stage, CachedTable& table, const KeysToRead& some,
                              ReadBatch& batch, std::span<RowView> out) {
  std::array<KeyState, kKeysAtOnce> states{};
  std::array<Access, kKeysAtOnce> accesses{};
  std::array<size_t, kKeysAtOnce> numbers;
  boost::container::static_vector<KeyState*, kKeysAtOnce> wanted;
  const KeyHash hash(table.id);
  const bool any_known = keys_.has_table(table.id);
  for (size_t i = 0; i < some.keys.size(); i++) {
    KeyState& state = states[wanted.size()];
    state.hash = hash(some.keys[i]);
    state.key = some.keys[i];
    // Own writes are to be seen, and a row that was read before is at hand.
    if (any_known && keys_.find(table.id, state.key, state.hash) != nullptr) {
      batch.leave(some.first + i);
      continue;
    }
    state.table = table.id;
    state.tuple = &accesses[wanted.size()];
    numbers[wanted.size()] = some.first + i;
    wanted.push_back(&state);
  }
  if (wanted.empty()) return Status();
  FirstLookOut looked{batch.room()};
  RDMACC_RETURN_IF_ERROR(look_first(stage, table, {wanted.data(), wanted.size()}, looked));
  batch.take_room(looked.room);
  for (size_t i = 0; i < wanted.size(); i++) {
    const KeyState& state = states[i];
    CHECK(!accesses[i].to_give_back());
    if (state.lost != AbortReason::kNone) return aborted(state.lost);
    if (state.base != KeyState::Base::kExists) {
      batch.leave(numbers[i]);
      continue;
    }
    accesses_.add_row(table.id, ScannedRead(accesses[i]));
    reads_++;
    event(HistoryOp::kRead, table.id, state.key, state.version);
    // Field by field: a temporary is copied in larger pieces than it has been written in, for which
    // processors wait.
    RowView& row = out[numbers[i]];
    row.found = true;
    row.key = state.key;
    row.row = state.in_room ? state.row : batch.keep(state.row);
    row.version = state.version;
    row.node = coordinator_.engine.map.primary_of(state.hash);
  }
  return Status();
}

}  // namespace rdmacc
