#pragma once
#include <string>
#include <vector>

#include "engine/check/checker.h"

// Histories by hand, for the checker's tests: everything is in table 1.

namespace rdmacc {

constexpr TableId kTable = 1;

inline HistoryEvent op(char letter, std::string key, uint64_t version) {
  return {.op = static_cast<HistoryOp>(letter),
          .table = kTable,
          .key = std::move(key),
          .version = version,
          .groups = {}};
}

// All keys of two nodes at depth 0, as of `stamp`.
inline HistoryEvent scan(uint64_t stamp) {
  return {.op = HistoryOp::kScan,
          .table = kTable,
          .key = {},
          .version = 0,
          .groups = {{0, 0, 0, stamp}, {1, 0, 0, stamp}}};
}

inline HistoryTransaction txn(WorkerId worker, std::vector<HistoryEvent> events,
                              HistoryOutcome outcome = HistoryOutcome::kCommitted) {
  HistoryTransaction transaction;
  transaction.worker = worker;
  transaction.outcome = outcome;
  transaction.events = std::move(events);
  return transaction;
}

// Of worker 1, from `start` to `end` in microseconds.
inline HistoryTransaction timed(uint64_t start, uint64_t end, std::vector<HistoryEvent> events,
                                HistoryOutcome outcome = HistoryOutcome::kCommitted) {
  HistoryTransaction transaction = txn(1, std::move(events), outcome);
  transaction.start_us = start;
  transaction.end_us = end;
  return transaction;
}

inline CheckReport check(const std::vector<HistoryTransaction>& history, bool preloaded = false) {
  return check_serializable(history, {.preloaded = preloaded, .real_time = true});
}

inline const HistoryTransaction kLoad = txn(0, {op('i', "x", 1), op('i', "y", 1)});

}  // namespace rdmacc
