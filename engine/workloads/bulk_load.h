#pragma once
#include "engine/workloads/workload.h"
#include "rdma/base/check.h"

namespace rdmacc {

// Of `count` things, which count from 0, those that one of the parts of a load has to see to.
struct LoadPart {
  uint64_t begin, end;
};
inline LoadPart part_of_load(uint64_t count, uint64_t part, uint64_t parts) {
  CHECK(part < parts);
  return {count * part / parts, count * (part + 1) / parts};
}

// Puts rows with keys that are known to be new into tables, in small transactions: add() them and
// finish(). A transaction that others were in the way of is tried again with the same rows.
class BulkLoad {
 public:
  BulkLoad(Session& session, const TxnOptions& options) : session_(session), options_(options) {}

  Status add(TableId table, std::string_view key, std::string_view row);
  Status finish();  // whatever add() has kept back

 private:
  struct Row {
    TableId table;
    std::string key, row;
  };

  Status insert_all();

  Session& session_;
  const TxnOptions options_;
  std::vector<Row> rows_;
};

// One row that must not be there yet, in a transaction of its own.
Status insert_alone(Session& session, const TxnOptions& options, TableId table,
                    std::string_view key, std::string_view row);

}  // namespace rdmacc
