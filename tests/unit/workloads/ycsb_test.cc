// YCSB: what transactions access, what they leave, and what its check notices.
#include "engine/workloads/ycsb.h"

#include <set>

#include "engine/workloads/number_key.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

uint64_t record_of(uint64_t value) { return value & ~Ycsb::kWriteBit; }

std::set<NodeId> nodes_of(const TxnInputs& inputs, TableId table) {
  std::set<NodeId> nodes;
  for (uint32_t i = 0; i < inputs.count; ++i) {
    nodes.insert(
        home_node_of(table, NumberKey(record_of(inputs.values[i])), LoadedWorkload::kNodes));
  }
  return nodes;
}

TEST(Ycsb, AccessesDistinctRecords) {
  LoadedWorkload ycsb("ycsb", "records=12,operations=12,hot-access=90,hot-records=1");
  Random random(3);
  for (int i = 0; i < 50; ++i) {
    const TxnInputs inputs = ycsb.workload().draw(random);
    std::set<uint64_t> records;
    for (uint32_t v = 0; v < inputs.count; ++v) records.insert(record_of(inputs.values[v]));
    EXPECT_EQ(records.size(), 12u);
    EXPECT_LT(*records.rbegin(), 12u);
  }
}

TEST(Ycsb, AccessesAsManyNodesAsAsked) {
  for (const uint32_t theta : {1, 2, 3}) {
    LoadedWorkload ycsb("ycsb",
                        "records=500,operations=5,hot-access=50,hot-records=2,"
                        "nodes-per-transaction=" +
                            std::to_string(theta));
    Random random(theta);
    std::set<NodeId> all;
    for (int i = 0; i < 100; ++i) {
      const std::set<NodeId> nodes = nodes_of(ycsb.workload().draw(random), ycsb.table(0));
      EXPECT_EQ(nodes.size(), theta);
      all.insert(nodes.begin(), nodes.end());
    }
    EXPECT_EQ(all.size(), LoadedWorkload::kNodes) << "always the same nodes";
  }
}

// The public helper says what the engine does.
TEST(Ycsb, RowsLieWhereTheyAreExpected) {
  LoadedWorkload ycsb("ycsb", "records=40");
  uint32_t seen = 0;
  ycsb.for_each(ycsb.table(0), [&](const RowView& view) {
    EXPECT_EQ(view.node, home_node_of(ycsb.table(0), view.key, LoadedWorkload::kNodes));
    ++seen;
  });
  EXPECT_EQ(seen, 40u);
}

TEST(Ycsb, WritesTheShareThatIsAsked) {
  for (const uint32_t percent : {0, 30, 100}) {
    auto ycsb = make_workload("ycsb", "writes=" + std::to_string(percent), {2, true});
    ASSERT_TRUE(ycsb.ok());
    Random random(9);
    uint64_t writes = 0;
    for (int i = 0; i < 1'000; ++i) {
      const TxnInputs inputs = (*ycsb)->draw(random);
      for (uint32_t v = 0; v < inputs.count; ++v) writes += inputs.values[v] >> 63;
    }
    EXPECT_NEAR(static_cast<double>(writes), percent * 100, 500);
  }
}

TEST(Ycsb, CountsItsUpdates) {
  LoadedWorkload ycsb("ycsb", "records=30,operations=8,writes=50,record-bytes=100,compute-us=3");
  Random random(2);
  for (int i = 0; i < 20; ++i) {
    const TxnInputs inputs = ycsb.workload().draw(random);
    int64_t writes = 0;
    for (uint32_t v = 0; v < inputs.count; ++v) {
      writes += static_cast<int64_t>(inputs.values[v] >> 63);
    }
    EXPECT_EQ(ycsb.run(inputs).delta, writes);
  }
  EXPECT_GT(ycsb.delta(), 0);
  EXPECT_EQ(ycsb.violation(), "");
}

TEST(Ycsb, NoticesLostUpdatesAndDamagedRecords) {
  LoadedWorkload ycsb("ycsb", "records=30,record-bytes=21,writes=100");
  Random random(4);
  ycsb.run(ycsb.workload().draw(random));
  EXPECT_EQ(ycsb.violation(), "");
  EXPECT_EQ(ycsb.violation(1), "the records count 10 updates, but 11 were committed");
  const NumberKey key(7);
  const std::string good = ycsb.row(ycsb.table(0), key);
  ASSERT_EQ(good.size(), 21u);
  for (const size_t at : {0, 8, 20}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    ycsb.overwrite(ycsb.table(0), key, bad);
    EXPECT_EQ(ycsb.violation(), "record 7 is not whole") << at;
  }
  ycsb.overwrite(ycsb.table(0), key, "");
  EXPECT_EQ(ycsb.violation(), "the scan found 29 of 30 records");
  ycsb.overwrite(ycsb.table(0), key, good);
  EXPECT_EQ(ycsb.violation(), "");
}

}  // namespace
}  // namespace rdmacc
