#include "tests/explore/explored_world.h"

// What the transactions of a program do, and what they must not see.

namespace rdmacc {

void ExploredWorld::run_transaction(uint32_t index, Client& client) {
  const ExploreTransaction& transaction = program_.transactions[index];
  Scheduler& scheduler = client.coordinator->worker().scheduler();
  Session session(*client.coordinator);
  client.status = prepare(session);
  if (!client.status.ok()) {
    client.ended = true;
    return;
  }
  client.arrived = true;
  client.arrived_us = client.coordinator->worker().endpoint().now_us();
  client.go.outstanding = 1;
  scheduler.await(client.go);
  Status status;
  for (size_t i = 0; i < transaction.operations.size() && status.ok(); ++i) {
    status =
        operate(session, transaction.operations[i], static_cast<char>('b' + index), client.problem);
    if (status.code() == Code::kNotFound || status.code() == Code::kDuplicateKey) status = Status();
  }
  if (!status.ok() || transaction.user_aborts) {
    session.abort();
    client.user_aborted = status.ok();
  } else {
    status = session.commit();
  }
  if (!status.ok() && status.code() != Code::kAborted && client.problem.empty()) {
    client.problem = "it ended with " + status.to_string();
  }
  client.status = status;
  client.ended = true;
}

// Enters the gate, without touching a row.
Status ExploredWorld::prepare(Session& session) {
  RDMACC_RETURN_IF_ERROR(session.begin(txn_));
  return session.scan(table_).status();
}

Status ExploredWorld::operate(Session& session, ExploreOp op, char letter, std::string& problem) {
  const std::string& key = op == ExploreOp::kGetY || op == ExploreOp::kPutY      ? y_
                           : op == ExploreOp::kGetZ || op == ExploreOp::kInsertZ ? z_
                                                                                 : x_;
  switch (op) {
    case ExploreOp::kGetX:
    case ExploreOp::kGetY:
    case ExploreOp::kGetZ: {
      RowView view;
      RDMACC_RETURN_IF_ERROR(session.get(table_, key, view));
      note_row(view, problem);
      return Status();
    }
    case ExploreOp::kPutX:
    case ExploreOp::kPutY:
      return session.put(table_, key, row_of(letter));
    case ExploreOp::kInsertZ:
      return session.insert(table_, key, row_of(letter));
    case ExploreOp::kRemoveX:
      return session.remove(table_, key);
    case ExploreOp::kScan:
      return read_all(session, problem);
    case ExploreOp::kCount:
      break;
  }
  return Status(Code::kInvalidArgument);
}

Status ExploredWorld::read_all(Session& session, std::string& problem) {
  Result<ScanHandle> cursor = session.scan(table_);
  if (!cursor.ok()) return cursor.status();
  std::vector<RowView> batch;
  do {
    RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
    for (const RowView& view : batch) note_row(view, problem);
  } while (!batch.empty());
  return Status();
}

// A row must be whole, and all that read one version must read the same row.
void ExploredWorld::note_row(const RowView& view, std::string& problem) {
  if (!view.found || view.version == 0) return;
  if (!whole(view.row)) {
    problem = "read the torn row \"" + std::string(view.row) + '"';
    return;
  }
  for (const SeenRow& seen : *seen_rows_) {
    if (seen.key == view.key && seen.version == view.version && seen.letter != view.row[0]) {
      problem = "read other bytes than another transaction of the same version";
    }
  }
  seen_rows_->push_back({std::string(view.key), view.version, view.row[0]});
}

// One letter again and again, in a number that belongs to the letter: half of one row and half of
// another, or one's bytes with another's length, do not look like one.
std::string ExploredWorld::row_of(char letter) const {
  const size_t base = setup_.wide_rows ? 71 : 7;
  return std::string(base + (letter % 2 == 0 ? 8 : 0), letter);
}

bool ExploredWorld::whole(std::string_view row) const {
  return !row.empty() && row == row_of(row[0]);
}

}  // namespace rdmacc
