#include <numeric>

#include "engine/coordinator_impl.h"
#include "engine/txn/transaction/detached_transaction.h"
#include "engine/txn/transaction/scan_cursor.h"
#include "engine/txn/transaction/transaction.h"

// Reading, writing and locking rows, scans, and hints for code that builds structures on rows.

namespace rdmacc {

NodeId home_node_of(TableId table, std::string_view key, NodeId nodes) {
  return PartitionMap(nodes, 0).primary_of(hash_key(table, key));
}

class ScanCursor {
 public:
  ScanCursor(Transaction& txn, TableId table, uint32_t visible_before, ScanMode mode,
             ScanWants wants, uint64_t* shared_walk)
      : scan(txn, table, visible_before, mode, wants, shared_walk) {}
  TableScan scan;
};

void ScanCursorDelete::operator()(ScanCursor* cursor) const { delete cursor; }

// ---- Rows

namespace {

[[gnu::always_inline]] inline void view(const KeyState& state, uint32_t visible_before, NodeId node,
                                        RowView& out) {
  out = RowView{};
  out.key = state.key;
  out.node = node;
  const OwnVersion* own = state.own_before(visible_before);
  if (own != nullptr) {
    out.found = !own->deleted;
    out.row = own->row();
  } else if (state.base == KeyState::Base::kExists) {
    out.found = true;
    out.row = state.row;
    out.version = state.version;
  }
}

uint64_t name_of_scan(TableId table) { return (uint64_t{table} << 1) + 2; }

[[gnu::cold]] Status too_large(std::string_view key, std::string_view row) {
  if (key.size() > kKeyBytesMax) {
    return Status(Code::kTooLarge, "the key has " + std::to_string(key.size()) +
                                       " bytes, the limit is " + std::to_string(kKeyBytesMax));
  }
  return Status(Code::kTooLarge, "the row has " + std::to_string(row.size()) +
                                     " bytes, the limit is " + std::to_string(kRowBytesMax));
}

bool fits(std::string_view key, std::string_view row) {
  return key.size() <= kKeyBytesMax && row.size() <= kRowBytesMax;
}

Status check_keys(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!fits(key, {})) return too_large(key, {});
  }
  return Status();
}

// Does the key have a row, as the transaction's newest own write or the engine says?
bool live(const KeyState& state) {
  return state.own == nullptr ? state.base == KeyState::Base::kExists : !state.own->deleted;
}

}  // namespace

// A transaction's first access by a number that is not 0 (restart.h).
uint64_t Session::name_of_access(TableId table, std::string_view key) {
  return hash_key(table, key) | 1;
}

Status Session::check_sizes(std::string_view key, std::string_view row) {
  return fits(key, row) ? Status() : too_large(key, row);
}

// Asked by every operation, and nearly always done.
[[gnu::always_inline]] inline Status Session::enter_at(TableId table, std::string_view key) {
  const bool started = txn_ != nullptr ? txn_->started() : rows().started();
  return started ? Status() : enter(name_of_access(table, key));
}

// The key's state, looked up, once key and row have been found to fit.
[[gnu::always_inline]] inline Status Session::find(TableId table, std::string_view key,
                                                   std::string_view row, bool to_write,
                                                   KeyState*& state) {
  RDMACC_RETURN_IF_ERROR(enter_at(table, key));
  if (!fits(key, row)) [[unlikely]]
    return too_large(key, row);
  if (txn_ != nullptr) return txn_->look_up_one(table, key, to_write, state);
  return rows().look_up_many(table, std::span(&key, 1), std::span(&state, 1), to_write);
}

Status Session::get(TableId table, std::string_view key, RowView& out, uint32_t visible_before) {
  KeyState* state = nullptr;
  RDMACC_RETURN_IF_ERROR(find(table, key, {}, /*to_write=*/false, state));
  view(*state, visible_before, map_.primary_of(state->hash), out);
  return Status();
}

Status Session::get_many(TableId table, std::span<const std::string_view> keys,
                         std::span<RowView> out, uint32_t visible_before, bool to_write) {
  CHECK(keys.size() == out.size());
  if (keys.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(enter_at(table, keys[0]));
  RDMACC_RETURN_IF_ERROR(check_keys(keys));
  boost::container::small_vector<KeyState*, 16> states(keys.size());
  const std::span<KeyState*> found(states.data(), states.size());
  RDMACC_RETURN_IF_ERROR(rows().look_up_many(table, keys, found, to_write));
  for (size_t i = 0; i < keys.size(); i++) {
    view(*states[i], visible_before, map_.primary_of(states[i]->hash), out[i]);
  }
  return Status();
}

Status Session::read_batch(TableId table, std::span<const std::string_view> keys, ReadBatch& batch,
                           std::span<RowView> out, uint32_t visible_before) {
  CHECK(keys.size() == out.size());
  if (keys.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(enter_at(table, keys[0]));
  if (txn_ == nullptr || !txn_->may_read_batch()) {
    return get_many(table, keys, out, visible_before);
  }
  RDMACC_RETURN_IF_ERROR(check_keys(keys));
  RDMACC_RETURN_IF_ERROR(txn_->read_batch(table, keys, batch, out));
  const std::span<const size_t> left = batch.left();
  if (left.empty()) return Status();
  std::vector<std::string_view> left_keys;
  for (const size_t i : left) left_keys.push_back(keys[i]);
  std::vector<KeyState*> states(left.size());
  RDMACC_RETURN_IF_ERROR(txn_->look_up_many(table, left_keys, states, /*to_write=*/false));
  for (size_t i = 0; i < left.size(); i++) {
    view(*states[i], visible_before, map_.primary_of(states[i]->hash), out[left[i]]);
  }
  return Status();
}

Status Session::put(TableId table, std::string_view key, std::string_view row) {
  KeyState* state = nullptr;
  RDMACC_RETURN_IF_ERROR(find(table, key, row, /*to_write=*/true, state));
  if (!live(*state)) return Status(Code::kNotFound);
  return rows().write(*state, false, row);
}

Status Session::amend(TableId table, std::string_view key, std::string_view row) {
  KeyState* state = nullptr;
  RDMACC_RETURN_IF_ERROR(find(table, key, row, /*to_write=*/true, state));
  if (!live(*state)) return Status(Code::kNotFound);
  return rows().amend(*state, row);
}

Status Session::insert(TableId table, std::string_view key, std::string_view row) {
  KeyState* state = nullptr;
  RDMACC_RETURN_IF_ERROR(find(table, key, row, /*to_write=*/true, state));
  if (live(*state)) return Status(Code::kDuplicateKey);
  return rows().write(*state, false, row);
}

Status Session::insert_unchecked(TableId table, std::string_view key, std::string_view row) {
  RDMACC_RETURN_IF_ERROR(enter_at(table, key));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, row));
  KeyState& state = rows().touch_unchecked(table, key);
  if (live(state)) return Status(Code::kDuplicateKey);
  return rows().write(state, false, row);
}

Status Session::insert_many(TableId table, std::span<const std::string_view> keys,
                            std::span<const std::string_view> rows, bool check_absent,
                            size_t* duplicate) {
  CHECK(keys.size() == rows.size() && duplicate != nullptr);
  if (keys.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(enter_at(table, keys[0]));
  for (size_t i = 0; i < keys.size(); i++) {
    RDMACC_RETURN_IF_ERROR(check_sizes(keys[i], rows[i]));
  }
  RowSource& source = this->rows();
  std::vector<KeyState*> states(keys.size());
  if (check_absent) {
    const std::span<KeyState*> found(states.data(), states.size());
    RDMACC_RETURN_IF_ERROR(source.look_up_many(table, keys, found, /*to_write=*/true));
  }
  for (size_t i = 0; i < keys.size(); i++) {
    KeyState& state = check_absent ? *states[i] : source.touch_unchecked(table, keys[i]);
    *duplicate = i;
    if (live(state)) return Status(Code::kDuplicateKey);
    RDMACC_RETURN_IF_ERROR(source.write(state, false, rows[i]));
  }
  return Status();
}

Status Session::remove(TableId table, std::string_view key) {
  KeyState* state = nullptr;
  RDMACC_RETURN_IF_ERROR(find(table, key, {}, /*to_write=*/true, state));
  if (!live(*state)) return Status(Code::kNotFound);
  return rows().write(*state, true, {});
}

// nullptr: see put_known().
KeyState* Session::known_to_write(TableId table, std::string_view key, std::string_view row) {
  if (txn_ == nullptr || !txn_->started() || load_posted() || !fits(key, row)) return nullptr;
  return txn_->known_to_write(table, key);
}

std::optional<Status> Session::put_known(TableId table, std::string_view key,
                                         std::string_view row) {
  KeyState* state = known_to_write(table, key, row);
  if (state == nullptr) return std::nullopt;
  return live(*state) ? txn_->write(*state, false, row) : Status(Code::kNotFound);
}

std::optional<Status> Session::remove_known(TableId table, std::string_view key) {
  KeyState* state = known_to_write(table, key, {});
  if (state == nullptr) return std::nullopt;
  return live(*state) ? txn_->write(*state, true, {}) : Status(Code::kNotFound);
}

// ---- Hints

bool Session::read_own_sets(TableId table, std::string_view key, RowView& out,
                            uint32_t visible_before) {
  const KeyState* state = rows().known(table, key);
  if (state == nullptr) return false;
  const bool asked =
      state->base == KeyState::Base::kExists || state->base == KeyState::Base::kAbsent;
  if (!asked && state->own_before(visible_before) == nullptr) return false;
  view(*state, visible_before, map_.primary_of(state->hash), out);
  return true;
}

Status Session::unvalidated_read(TableId table, std::string_view key, RowView& out) {
  RDMACC_RETURN_IF_ERROR(enter_at(table, key));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, {}));
  out = RowView{};
  return rows().unvalidated_read(table, key, out.found, out.row);
}

uint64_t Session::draw_number() { return engine().worker.endpoint().random().next(); }

void Session::meet_hot_rows() {
  if (txn_ == nullptr) return;
  CHECK(scheduler().in_coroutine());
  scheduler().stay(true);
}

void Session::note_wide_read() {
  if (txn_ != nullptr) txn_->note_wide_read();
}

Status Session::abort_on_conflict() {
  return txn_ != nullptr ? txn_->abort_on_conflict() : aborted(AbortReason::kVersionChanged);
}

Status Session::check_reads() {
  return txn_ != nullptr && txn_->started() ? txn_->check_reads() : Status();
}

void Session::need_current_reads() { txn().need_current_reads(); }

Status Session::kept_unvalidated_read(TableId table, std::string_view key, RowView& out) {
  RDMACC_RETURN_IF_ERROR(enter_at(table, key));
  out = RowView{};
  const std::string* kept =
      txn_ != nullptr ? engine().state.unvalidated_reads.find(table, key) : nullptr;
  out.found = kept != nullptr;
  if (out.found) out.row = *kept;
  return Status();
}

void Session::keep_unvalidated_read(TableId table, std::string_view key, std::string_view row) {
  engine().state.unvalidated_reads.put(table, key, row);
}

void Session::forget_unvalidated_read(TableId table, std::string_view key) {
  engine().state.unvalidated_reads.forget(table, key);
}

Result<RowLock> Session::try_lock(TableId table, std::string_view key, RowLockMode mode) {
  RDMACC_RETURN_IF_ERROR(enter_at(table, key));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, {}));
  RowLock result = RowLock::kAbsent;
  RDMACC_RETURN_IF_ERROR(rows().try_lock(table, key, mode, result));
  return result;
}

uint64_t Session::held_by() const { return txn_ != nullptr ? txn_->held_by() : held_by_; }

Result<ScanHandle> Session::scan(TableId table, uint32_t visible_before, ScanMode mode,
                                 ScanWants wants, uint64_t* shared_walk) {
  if (coordinator_ == nullptr) {
    return Status(Code::kInvalidArgument, "a procedure's transaction cannot scan");
  }
  RDMACC_RETURN_IF_ERROR(enter_to_scan(table));
  return ScanHandle(new ScanCursor(*txn_, table, visible_before, mode, wants, shared_walk));
}

Status Session::enter_to_scan(TableId table) {
  // Splits that this worker has caused, and that the scan would lose to.
  FullGroups& full_groups = engine().state.full_groups;
  if (rows().started()) {
    full_groups.wait_for_splits();
  } else {
    full_groups.settle_all();
  }
  return enter(name_of_scan(table));
}

// ---- Guests

Status Session::share_scan(TableId table, uint64_t* shared_walk) {
  CHECK(coordinator_ != nullptr && shared_walk != nullptr && *shared_walk == 0);
  if (!txn().may_scan_slots()) return Status();
  RDMACC_RETURN_IF_ERROR(enter_to_scan(table));
  TableScan scan(*txn_, table, kEveryCommand, ScanMode::kSerializable, {}, shared_walk);
  return scan.share();
}

uint64_t Session::shared_walk_anew(uint64_t shared_walk) {
  return PageWalk::is_one(shared_walk) ? PageWalk().pack() : 0;
}

bool Session::may_host() { return txn().may_host(); }

Result<HostTicket> Session::host(TableId table) {
  if (!txn().may_host()) {
    return Status(Code::kInvalidArgument, "others cannot read for this transaction");
  }
  RDMACC_RETURN_IF_ERROR(enter(name_of_scan(table)));
  return txn().host();
}

Status Session::begin_as_guest(const HostTicket& ticket) {
  const auto protocol = static_cast<Protocol>(ticket.protocol);
  RDMACC_RETURN_IF_ERROR(begin({.protocol = protocol, .plan = StagePlan(ticket.stages)}));
  txn().start_as_guest(ticket);
  return Status();
}

size_t Session::bytes_to_lend() { return txn().lend(nullptr); }
void Session::lend(std::byte* to) {
  CHECK(to != nullptr);
  txn().lend(to);
}
Status Session::borrow(std::span<const std::byte> lent, std::shared_ptr<const void> memory) {
  return txn().borrow(lent, std::move(memory));
}
std::vector<HistoryEvent> Session::lend_history() { return txn().take_events(); }
void Session::borrow_history(std::vector<HistoryEvent> events) {
  txn().add_events(std::move(events));
}

Status Session::wait_for_splits() {
  if (coordinator_ == nullptr) {
    return Status(Code::kInvalidArgument, "a procedure's transaction waits for nothing");
  }
  constexpr int kRoundsMax = 300;  // a minute
  EngineContext& context = engine().state.engine;
  std::vector<NodeId> nodes(context.topology.nodes);
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  return context.storage.wait_for_pending_splits(nodes, context.worker.counters(), kRoundsMax,
                                                 {.cancelled = &cancelled_});
}

Status Session::scan_next(ScanCursor& cursor, std::vector<RowView>& batch) {
  CHECK(txn_ != nullptr);
  return cursor.scan.next(batch);
}

Status Session::scan_count(ScanCursor& cursor, uint64_t& rows) {
  CHECK(txn_ != nullptr);
  return cursor.scan.count(rows);
}

}  // namespace rdmacc
