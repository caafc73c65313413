// A transaction that waits for another one's lock, in a handler of the owner's, is cancelled.
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

}  // namespace
}  // namespace rdmacc
