#include "engine/workloads/bulk_load.h"

namespace rdmacc {
namespace {

// Few: larger transactions that load at once meet on gap headers, and what one of them has done is
// done again.
constexpr size_t kRowsPerTransaction = 16;

}  // namespace

Status BulkLoad::add(TableId table, std::string_view key, std::string_view row) {
  rows_.push_back(Row{table, std::string(key), std::string(row)});
  return rows_.size() < kRowsPerTransaction ? Status() : finish();
}

Status BulkLoad::finish() {
  if (rows_.empty()) return Status();
  const Status status = retry_aborted(session_.scheduler(), [this] {
    RDMACC_RETURN_IF_ERROR(session_.begin(options_));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, insert_all()));
    return abort_unless_ok(session_, session_.commit());
  });
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
