// What the runs make of a history that is serializable, and breaks the order of real time.
#include <gtest/gtest.h>

#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

HistoryTransaction timed(uint64_t start_us, uint64_t end_us, HistoryOp op, uint64_t version) {
  HistoryTransaction transaction;
  transaction.outcome = HistoryOutcome::kCommitted;
  transaction.start_us = start_us;
  transaction.end_us = end_us;
  transaction.events.push_back({op, 1, "x", version, {}});
  return transaction;
}

TEST(JudgeHistory, CountsWhatTheProtocolDoesNotPromise) {
  const std::vector<HistoryTransaction> stale{
      timed(1, 5, HistoryOp::kInsert, 1), timed(10, 20, HistoryOp::kWrite, 2),
      timed(21, 30, HistoryOp::kRead, 1), timed(31, 40, HistoryOp::kRead, 1)};
  for (const Protocol protocol : available_protocols()) {
    uint64_t violations = 0;
    const Status status = judge_history(stale, protocol, violations);
    EXPECT_EQ(violations, 2u) << protocol_name(protocol);
    const bool by_time = happens_at_ctts(protocol) || protocol == Protocol::kSundial ||
                         protocol == Protocol::kTictoc || protocol == Protocol::kMaat;
    EXPECT_EQ(status.ok(), by_time) << protocol_name(protocol);
  }
}

TEST(JudgeHistory, NeverExcusesACycle) {
  std::vector<HistoryTransaction> lost{timed(1, 5, HistoryOp::kInsert, 1),
                                       timed(10, 20, HistoryOp::kRead, 1),
                                       timed(10, 20, HistoryOp::kRead, 1)};
  lost[1].events.push_back({HistoryOp::kWrite, 1, "x", 2, {}});
  lost[2].events.push_back({HistoryOp::kWrite, 1, "x", 3, {}});
  for (const Protocol protocol : available_protocols()) {
    uint64_t violations = 0;
    EXPECT_FALSE(judge_history(lost, protocol, violations).ok()) << protocol_name(protocol);
  }
}

}  // namespace
}  // namespace rdmacc
