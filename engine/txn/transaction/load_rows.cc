// What a transaction loads into a table of its own, before it commits.
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {

// A load asks for each of its batches: what has been looked through for the same table is not
// looked through again.
bool Transaction::has_met(TableId table) {
  if (accesses_.has_rows(table)) return true;
  if (looked_for_.table != table) looked_for_ = {.table = table};
  const StableList<Access>& accesses = accesses_.list();
  const StableList<KeyState>& keys = keys_.all();
  for (auto at = accesses.begin_after(looked_for_.accesses); at != accesses.end(); ++at) {
    if ((*at).table == table) return true;
  }
  for (auto at = keys.begin_after(looked_for_.keys); at != keys.end(); ++at) {
    if ((*at).table == table) return true;
  }
  looked_for_.accesses = accesses.mark();
  looked_for_.keys = keys.mark();
  return false;
}

std::unique_ptr<PostedLoad> Transaction::post_load(std::span<RowToLoad> rows, TableId table,
                                                   bool check_absent) {
  CHECK(started() && !prepared_ && parameters_.rules->may_load_beforehand());
  for (RowToLoad& row : rows) {
    row.node = coordinator_.engine.map.primary_of(hash_key(table, row.key));
  }
  const LoadedRows load{table, coordinator_.engine.clock.next(), check_absent};
  // The history has them from now on: a load that fails ends its transaction, but for a savepoint.
  for (const RowToLoad& row : rows) event(HistoryOp::kInsert, table, row.key, load.stamp);
  return std::make_unique<PostedLoad>(coordinator_.engine.worker, coordinator_.engine.topology,
                                      load, rows, allocation_counters_);
}

Status Transaction::end_load(PostedLoad& load, size_t* duplicate) {
  CHECK(started());
  load.await();
  const Status status = load.result(duplicate);
  note_failure(status.code() == Code::kDuplicateKey ? Status() : status);
  return status;
}

}  // namespace rdmacc
