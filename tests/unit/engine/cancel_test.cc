// Ends of waits for another transaction's lock: the one that waits, in a handler of the owner's, is
// cancelled; the holder waits for something else.
#include <gtest/gtest.h>

#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

class Cancelled : public testing::TestWithParam<uint16_t> {};

TEST_P(Cancelled, EndsTheWaitForALock) {
  SimEngine engine(4);
  Coordinator &older = engine.add_coordinator(), &younger = engine.add_coordinator();
  TxnOptions options;
  options.protocol = Protocol::kWaitdie;
  options.plan = StagePlan(GetParam());
  TableId table = kNoTable;
  Session waiter(older), holder(younger);
  engine.run(older, [&] {
    TableSpec spec;
    spec.relfilenode = 9;
    auto created = waiter.create_table(spec);
    ASSERT_TRUE(created.ok());
    table = created->id;
    ASSERT_TRUE(waiter.begin(options).ok());
    ASSERT_TRUE(waiter.insert(table, "a", "0").ok());
    ASSERT_TRUE(waiter.insert(table, "b", "0").ok());
    ASSERT_TRUE(waiter.commit().ok());
    RowView row;
    ASSERT_TRUE(waiter.begin(options).ok());
    ASSERT_TRUE(waiter.get(table, "a", row).ok());
  });
  engine.run(younger, [&] {
    ASSERT_TRUE(holder.begin(options).ok());
    ASSERT_TRUE(holder.put(table, "b", "1").ok());
  });
  Status waited;
  bool ended = false;
  ASSERT_TRUE(older.worker().scheduler().spawn([&] {
    RowView row;
    waited = waiter.get(table, "b", row);
    waiter.abort();
    ended = true;
  }));
  engine.run(younger, [&] { younger.worker().scheduler().sleep_for(20'000); });
  EXPECT_FALSE(ended);
  waiter.cancel();
  ASSERT_TRUE(engine.run_until([&] { return ended; }));
  // Without an end to the wait it would have given up by itself, much later.
  EXPECT_EQ(waited.code(), Code::kCancelled) << waited.to_string();
  engine.run(younger, [&] { ASSERT_TRUE(holder.commit().ok()); });
  engine.run(younger, [&] {
    for (NodeId node = 0; node < 2; ++node) {
      auto locked = holder.locked_headers(node, 0);
      ASSERT_TRUE(locked.ok());
      EXPECT_TRUE(locked->headers.empty()) << "of node " << node;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, Cancelled, testing::Values(uint16_t{0}, uint16_t{29}),
                         [](const auto& of) { return of.param == 0 ? "rpc" : "one_sided"; });

Standstill holders_standstill;
WorkerId holders_worker;

// How long one waits for the younger holder of a lock in WAITDIE, in simulated microseconds.
uint64_t wait_for_one_that(Standstill standstill) {
  SimEngine engine(4);
  engine.options().standstill_of = [](WorkerId worker) {
    return worker == holders_worker ? holders_standstill : Standstill::kNone;
  };
  Coordinator &older = engine.add_coordinator(), &younger = engine.add_coordinator();
  holders_worker = younger.worker().id();
  holders_standstill = standstill;
  TxnOptions options;
  options.protocol = Protocol::kWaitdie;
  Session waiter(older), holder(younger);
  TableId table = kNoTable;
  uint64_t waited_us = 0;
  RowView row;
  engine.run(older, [&] {
    TableSpec spec;
    spec.relfilenode = 9;
    auto created = waiter.create_table(spec);
    CHECK(created.ok());
    table = created->id;
    CHECK(waiter.begin(options).ok() && waiter.insert(table, "a", "0").ok() &&
          waiter.insert(table, "b", "0").ok() && waiter.commit().ok());
    CHECK(waiter.begin(options).ok() && waiter.get(table, "a", row).ok());
  });
  engine.run(younger,
             [&] { CHECK(holder.begin(options).ok() && holder.put(table, "b", "1").ok()); });
  engine.run(older, [&] {
    const uint64_t begin_us = older.worker().endpoint().now_us();
    EXPECT_EQ(reason_of(waiter.get(table, "b", row)), AbortReason::kWaitedTooLong);
    waited_us = older.worker().endpoint().now_us() - begin_us;
    waiter.abort();
  });
  engine.run(younger, [&] { EXPECT_TRUE(holder.commit().ok()); });
  return waited_us;
}

TEST(HoldersStandstill, IsNotWaitedForAsLongAsWork) {
  const uint64_t works_us = wait_for_one_that(Standstill::kNone);
  EXPECT_LT(5 * wait_for_one_that(Standstill::kForLock), works_us);
  EXPECT_GT(2 * wait_for_one_that(Standstill::kForClient), works_us) << "its next command may come";
}

}  // namespace
}  // namespace rdmacc
