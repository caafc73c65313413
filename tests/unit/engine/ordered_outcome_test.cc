#include "engine/cluster/partition_map.h"
#include "tests/unit/engine/sim_engine.h"

// What becomes of a deterministic protocol's request whose coordinator has given up waiting.

namespace rdmacc {
namespace {

constexpr int kRows = 1'000;
constexpr int kRowsAtOnce = 20;
constexpr uint64_t kEventsMax = 2'000'000'000;

// A node is away for longer than the coordinator waits, and the request is executed when it is
// back. Until then no other protocol may run: it would read one of the two rows as it was.
TEST(OrderedOutcomeTest, MayHappenLaterButNotUnderAnotherProtocol) {
  SimEngine engine(7, 0, 2);
  Coordinator* here = &engine.add_coordinator();
  Coordinator* there = &engine.add_coordinator();
  if (here->worker().id() % 2 != 0) std::swap(here, there);  // its home is the node that stays
  Session one(*here), other(*there);
  TxnOptions occ, calvin;
  occ.protocol = Protocol::kOcc;
  occ.gate_timeout_us = 1'000'000;
  calvin.protocol = Protocol::kCalvin;
  TableId table = kNoTable;
  const PartitionMap map(2, 0);
  std::array<std::string, 2> on;  // a key of each node
  engine.run(*here, [&] {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 64;
    spec.history = 3;
    auto made = one.create_table(spec);
    ASSERT_TRUE(made.ok());
    table = made->id;
    for (int from = 0; from < kRows; from += kRowsAtOnce) {
      ASSERT_TRUE(one.begin(occ).ok());
      for (int i = from; i < from + kRowsAtOnce; i++) {
        const std::string key = "k" + std::to_string(i);
        ASSERT_TRUE(one.insert(table, key, "0").ok());
        on[map.primary_of(hash_key(table, key))] = key;
      }
      ASSERT_TRUE(one.commit().ok());
    }
    ASSERT_TRUE(one.wait_for_splits().ok());
    here->worker().scheduler().sleep_for(100'000);
    ASSERT_TRUE(one.begin(calvin).ok());
    for (const std::string& key : on) ASSERT_TRUE(one.put(table, key, "1").ok());
  });
  engine.kill_node(1);
  Status committed;
  engine.run(
      *here, [&] { committed = one.commit(); }, kEventsMax);
  EXPECT_FALSE(committed.ok());
  EXPECT_TRUE(one.commit_outcome_unknown());
  engine.run(*there, [&] {
    ASSERT_TRUE(other.begin(occ).ok());
    RowView row;
    EXPECT_EQ(other.get(table, on[0], row).code(), Code::kTimeout);
    other.abort();
  });
}

}  // namespace
}  // namespace rdmacc
