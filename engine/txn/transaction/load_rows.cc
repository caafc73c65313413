// What a transaction loads into a table of its own, before it commits.
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {

bool Transaction::has_met(TableId table) const {
  for (const Access& access : accesses_) {
    if (access.table == table) return true;
  }
  for (const KeyState& state : keys_.all()) {
    if (state.table == table) return true;
  }
  return false;
}

Status Transaction::load_rows(std::span<RowToLoad> rows, TableId table, bool check_absent,
                              size_t* duplicate) {
  CHECK(started() && !prepared_ && parameters_.rules->may_load_beforehand());
  for (RowToLoad& row : rows) {
    row.node = coordinator_.engine.map.primary_of(hash_key(table, row.key));
  }
  const LoadedRows load{table, coordinator_.engine.clock.next(), check_absent};
  const Status status = coordinator_.engine.storage.load_rows(load, rows, parameters_.cancelled,
                                                              allocation_counters_, duplicate);
  note_failure(status.code() == Code::kDuplicateKey ? Status() : status);
  if (!status.ok()) return status;
  for (const RowToLoad& row : rows) event(HistoryOp::kInsert, table, row.key, load.stamp);
  return Status();
}

}  // namespace rdmacc
