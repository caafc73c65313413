#include "engine/workloads/bulk_load.h"

namespace rdmacc {
namespace {

// Few: larger transactions that load at once meet on gap headers, and what one of them has done is
// done again.
constexpr size_t kRowsPerTransaction = 16;

// Until no other transaction is in its way.
Status in_one_transaction(Session& session, const TxnOptions& options,
                          const std::function<Status()>& inserts) {
  return retry_aborted(session.scheduler(), [&] {
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, inserts()));
    return abort_unless_ok(session, session.commit());
  });
}

}  // namespace

Status insert_alone(Session& session, const TxnOptions& options, TableId table,
                    std::string_view key, std::string_view row) {
  return in_one_transaction(session, options, [&] { return session.insert(table, key, row); });
}

Status BulkLoad::add(TableId table, std::string_view key, std::string_view row) {
  rows_.push_back(Row{table, std::string(key), std::string(row)});
  return rows_.size() < kRowsPerTransaction ? Status() : finish();
}

Status BulkLoad::finish() {
  if (rows_.empty()) return Status();
  const Status status = in_one_transaction(session_, options_, [this] { return insert_all(); });
  rows_.clear();
  return status;
}

Status BulkLoad::insert_all() {
  for (const Row& row : rows_) {
    RDMACC_RETURN_IF_ERROR(session_.insert_unchecked(row.table, row.key, row.row));
  }
  return Status();
}

}  // namespace rdmacc
