#include "engine/txn/transaction/ordered_events.h"

namespace rdmacc {
namespace {

HistoryEvent event_of(HistoryOp op, TableId table, const std::string& key, uint64_t version) {
  HistoryEvent event;
  event.op = op;
  event.table = table;
  event.key = key;
  event.version = version;
  return event;
}

}  // namespace

std::vector<HistoryEvent> events_of_procedure(const OrderedRequest& request,
                                              const OrderedOutcome& outcome) {
  std::vector<HistoryEvent> events;
  if (outcome.reads.size() != request.reads.size()) return events;
  for (size_t i = 0; i < request.reads.size(); i++) {
    const OrderedRead& read = request.reads[i];
    events.push_back(event_of(outcome.reads[i].found ? HistoryOp::kRead : HistoryOp::kMiss,
                              read.table, read.key, outcome.reads[i].version));
  }
  for (const OrderedWrite& write : outcome.writes) {
    bool found = false;
    for (size_t i = 0; i < request.reads.size(); i++) {
      const OrderedRead& read = request.reads[i];
      if (read.table == write.table && read.key == write.key) found = outcome.reads[i].found;
    }
    if (!found && write.deleted) continue;
    const HistoryOp op =
        write.deleted ? HistoryOp::kDelete : (found ? HistoryOp::kWrite : HistoryOp::kInsert);
    events.push_back(event_of(op, write.table, write.key, outcome.stamp));
  }
  return events;
}

}  // namespace rdmacc
