#include "tests/sim/door/door.h"

#include <algorithm>

#include "engine/txn/transaction/detached_transaction.h"
#include "engine/workloads/bulk_load.h"
#include "tests/sim/door/door_transaction.h"

namespace rdmacc {
namespace {

constexpr uint32_t kFirstTableNumber = 71, kVisitedNumber = 79;
constexpr uint64_t kLoadsDrawn = 4;  // known loads that a transaction may look for rows of
constexpr uint64_t kNumberMask = 0xFFFF'FFFF'FF00;
constexpr size_t kFirstRows = 20;
constexpr uint32_t kRowsAlonePercent = 40;

}  // namespace

std::vector<TableSpec> Door::table_specs() const {
  std::vector<TableSpec> specs;
  for (uint32_t i = 0; i < kTables; ++i) {
    specs.push_back(native_table(kFirstTableNumber + i, kDoorRecordSize, options_.history));
  }
  return specs;
}

TableSpec Door::visited_spec(uint32_t history, uint32_t record_size) {
  return native_table(kVisitedNumber, record_size, history);
}

// Some of the keys that come and go; they crowd in the groups that loads make split.
Status Door::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t) {
  if (part != 0) return Status();
  for (uint64_t i = 0; i < std::min<uint64_t>(kFirstRows, options_.keys); i += 2) {
    for (const size_t number : {kFirst, kSecond}) {
      const std::string key = keys_.key(table(number), 'k', i);
      RDMACC_RETURN_IF_ERROR(insert_alone(session, options, table(number), key, key + ":"));
    }
  }
  // Transactions may end their scans early: from this one the checker learns of all nodes.
  return retry_aborted(session.scheduler(), [&] {
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    const auto look = [](const RowView&) { return Status(); };
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, for_each_row(session, table(kFirst), look)));
    return abort_unless_ok(session, session.commit());
  });
}

TxnInputs Door::draw(Random& random) const {
  TxnInputs inputs;
  inputs.kind = random.percent(options_.visit_percent) ? kVisit
                : random.percent(kRowsAlonePercent)    ? kRowsAlone
                                                       : kAll;
  if (random.percent(options_.read_only_percent)) inputs.kind = kReadOnly;
  inputs.add(random.next());
  inputs.add(random.next() & kNumberMask);
  for (uint64_t i = 0; i < kLoadsDrawn && !loaded_.empty(); ++i) {
    inputs.add(loaded_[random.below(loaded_.size())]);
  }
  return inputs;
}

Status Door::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  const DoorTransaction::Surroundings around{
      options_, keys_, {table(kFirst), table(kSecond)}, visited_, nullptr};
  DoorTransaction transaction(session, around, inputs);
  const Status status = transaction.run();
  effect.rollback = transaction.rolls_back();
  // Nothing is promised of what is read in a table that is being dropped.
  if (inputs.kind != kVisit) effect.doubt = transaction.doubt();
  return status;
}

Status Door::attempt_observed(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                              TxnEffect& effect) const {
  effect = TxnEffect();
  const TableId visited = visited_;
  const DoorTransaction::Surroundings around{
      options_, keys_, {table(kFirst), table(kSecond)}, visited, ledger_};
  DoorTransaction transaction(session, around, inputs);
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  Status status = transaction.run();
  if (status.ok() && !transaction.rolls_back()) {
    const DoorEnd under_way(*this, DoorOp::kCommit);
    status = session.commit();
  }
  if (session.active()) {
    const DoorEnd under_way(*this, DoorOp::kAbort);
    session.abort();
  }
  effect.rollback = transaction.rolls_back() || status.code() == Code::kCancelled;
  const bool gone = inputs.kind == kVisit && status.code() == Code::kNotFound;
  if (status.code() == Code::kCancelled || gone) {
    effect.rollback = true;
    return Status();
  }
  RDMACC_RETURN_IF_ERROR(status);
  // Nothing is promised of what is read in a table that is being dropped.
  if (effect.rollback || inputs.kind == kVisit || transaction.doubt().empty()) return Status();
  return Status(Code::kCorrupt, transaction.doubt());
}

// Keys follow from the inputs alone, so that a run on no rows at all touches those of every other.
bool Door::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (inputs.kind != kRowsAlone || options_.long_keys) return false;  // these have no room in it
  DetachedTransaction nothing(nullptr, DetachedTransaction::Ungiven::kAbsent);
  Session session(nothing);
  const DoorTransaction::Surroundings around{
      options_, keys_, {table(kFirst), table(kSecond)}, kNoTable, nullptr};
  DoorTransaction transaction(session, around, inputs);
  const Status run = transaction.run();
  CHECK(run.ok());
  for (const KeyState& state : nothing.keys().all()) {
    const bool writes = transaction.written().contains({state.table, std::string(state.key)});
    keys.add(state.table, state.key, writes ? KeyUse::kWrite : KeyUse::kRead);
  }
  return true;
}

// What must be there is checked of every workload alike (acknowledged_rows.h).
Status Door::check(Session&, const TxnOptions&, int64_t, std::string& violation) const {
  violation.clear();
  return Status();
}

void Door::acknowledge(const TxnInputs& inputs, const TxnEffect& effect) {
  if (effect.rollback || inputs.kind == kVisit) return;
  loaded_.push_back(DoorTransaction::load_number(inputs));
}

void Door::set_visited(TableId table) {
  visited_ = table;
  if (table != kNoTable) all_visited_.push_back(table);
}

bool Door::was_visited(TableId table) const {
  return std::find(all_visited_.begin(), all_visited_.end(), table) != all_visited_.end();
}

}  // namespace rdmacc
