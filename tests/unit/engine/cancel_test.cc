// Ends of waits for another transaction's lock: the one that waits, in a handler of the owner's, is
// cancelled; the holder waits for something else.
#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

// Of WAITDIE: the older one has locked "a" and is about to want "b", which the younger one has.
struct TwoThatMeet {
  explicit TwoThatMeet(StagePlan plan, StandstillOf standstill_of = nullptr) : engine(4) {
    engine.options().standstill_of = standstill_of;
    older = &engine.add_coordinator();
    younger = &engine.add_coordinator();
    waiter = std::make_unique<Session>(*older);
    holder = std::make_unique<Session>(*younger);
    TxnOptions options;
    options.protocol = Protocol::kWaitdie;
    options.plan = plan;
    engine.run(*older, [&] {
      TableSpec spec;
      spec.relfilenode = 9;
      auto created = waiter->create_table(spec);
      CHECK(created.ok());
      table = created->id;
      CHECK(waiter->begin(options).ok() && waiter->insert(table, "a", "0").ok() &&
            waiter->insert(table, "b", "0").ok() && waiter->commit().ok());
      CHECK(waiter->begin(options).ok() && waiter->get(table, "a", row).ok());
    });
    engine.run(*younger,
               [&] { CHECK(holder->begin(options).ok() && holder->put(table, "b", "1").ok()); });
  }

  SimEngine engine;
  Coordinator *older = nullptr, *younger = nullptr;
  std::unique_ptr<Session> waiter, holder;
  TableId table = kNoTable;
  RowView row;
};

class Cancelled : public testing::TestWithParam<uint16_t> {};

TEST_P(Cancelled, EndsTheWaitForALock) {
  TwoThatMeet two{StagePlan(GetParam())};
  Status waited;
  bool ended = false;
  ASSERT_TRUE(two.older->worker().scheduler().spawn([&] {
    waited = two.waiter->get(two.table, "b", two.row);
    two.waiter->abort();
    ended = true;
  }));
  two.engine.run(*two.younger, [&] { two.younger->worker().scheduler().sleep_for(20'000); });
  EXPECT_FALSE(ended);
  two.waiter->cancel();
  ASSERT_TRUE(two.engine.run_until([&] { return ended; }));
  // Without an end to the wait it would have given up by itself, much later.
  EXPECT_EQ(waited.code(), Code::kCancelled) << waited.to_string();
  two.engine.run(*two.younger, [&] {
    ASSERT_TRUE(two.holder->commit().ok());
    for (NodeId node = 0; node < 2; ++node) {
      auto locked = two.holder->locked_headers(node, 0);
      ASSERT_TRUE(locked.ok());
      EXPECT_TRUE(locked->headers.empty()) << "of node " << node;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Stages, Cancelled, testing::Values(uint16_t{0}, uint16_t{29}),
                         [](const auto& of) { return of.param == 0 ? "rpc" : "one_sided"; });

// Of all that hold something that the simulated sessions wait for.
Standstill holders_standstill;

// How long the older one waits then, in simulated microseconds.
uint64_t wait_for_one_that(Standstill standstill) {
  holders_standstill = standstill;
  TwoThatMeet two{StagePlan(TxnOptions{}.plan), [](WorkerId) { return holders_standstill; }};
  uint64_t waited_us = 0;
  two.engine.run(*two.older, [&] {
    const uint64_t begin_us = two.older->worker().endpoint().now_us();
    EXPECT_EQ(reason_of(two.waiter->get(two.table, "b", two.row)), AbortReason::kWaitedTooLong);
    waited_us = two.older->worker().endpoint().now_us() - begin_us;
    two.waiter->abort();
  });
  two.engine.run(*two.younger, [&] { EXPECT_TRUE(two.holder->commit().ok()); });
  return waited_us;
}

TEST(HoldersStandstill, IsNotWaitedForAsLongAsWork) {
  const uint64_t works_us = wait_for_one_that(Standstill::kNone);
  EXPECT_LT(5 * wait_for_one_that(Standstill::kForLock), works_us);
  EXPECT_GT(2 * wait_for_one_that(Standstill::kForClient), works_us) << "its next command may come";
}

}  // namespace
}  // namespace rdmacc
