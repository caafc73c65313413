// What a worker knows of a table lives as long as one of its coroutines may hold it; where its rows
// are may be known in part from now, in part from before.
#include "engine/coordinator_impl.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

class TableCacheTest : public testing::Test {
 protected:
  TableId make_table() {
    TableSpec spec;
    spec.relfilenode = ++tables_made_;
    return session_.create_table(spec)->id;
  }
  void insert(TableId table, int from, int to) {
    ASSERT_TRUE(session_.begin(TxnOptions{}).ok());
    for (int i = from; i < to; i++) {
      ASSERT_TRUE(session_.insert(table, "row " + std::to_string(i), "row").ok());
    }
    ASSERT_TRUE(session_.commit().ok());
  }
  size_t scanned(TableId table) {
    EXPECT_TRUE(session_.begin(TxnOptions{}).ok());
    auto scan = session_.scan(table);
    EXPECT_TRUE(scan.ok());
    size_t rows = 0;
    std::vector<RowView> batch;
    do {
      EXPECT_TRUE(session_.scan_next(**scan, batch).ok());
      rows += batch.size();
    } while (!batch.empty());
    EXPECT_TRUE(session_.commit().ok());
    return rows;
  }
  // The root array of node 0, read anew.
  const CachedRoot& latest(CachedTable& table) {
    EXPECT_TRUE(tables().load_root(table, 0, true, counters_).ok());
    return table.roots[0];
  }
  TableCache& tables() { return coordinator_.impl().state.engine.tables; }

  SimEngine engine_{4};
  Coordinator& coordinator_ = engine_.add_coordinator();
  Session session_{coordinator_};
  VerbCounters counters_;
  uint32_t tables_made_ = 0;
};

TEST_F(TableCacheTest, ADroppedTableLivesWhileOthersMayHoldIt) {
  Scheduler& scheduler = coordinator_.worker().scheduler();
  bool other_ended = false;
  engine_.run(coordinator_, [&] {
    const TableId id = make_table();
    CachedTable* held = *tables().get(id, counters_);
    ASSERT_TRUE(tables().load_root(*held, 0, false, counters_).ok());
    ASSERT_TRUE(scheduler.spawn([&] {
      scheduler.sleep_for(1'000'000);
      other_ended = true;
    }));
    ASSERT_TRUE(session_.drop_table(id).ok());
    EXPECT_EQ(id, held->id);
    EXPECT_EQ(0u, held->roots[0].bits) << "what is held names no group any more";
    EXPECT_NE(held, *tables().get(make_table(), counters_)) << "its memory is used again";
    EXPECT_FALSE(tables().get(id, counters_).ok());
    while (!other_ended) scheduler.sleep_for(100'000);
  });
}

// A split that leaves the array as large as it was changes some places of it: one of them is asked.
TEST_F(TableCacheTest, AGroupThatWasSplitIsFoundByOnePlaceOfTheArray) {
  constexpr int kRows = 4'000, kRowsAtOnce = 20;
  engine_.run(coordinator_, [&] {
    const TableId id = make_table();
    CachedTable* table = *tables().get(id, counters_);
    int refreshed = 0;
    for (int row = 0; row < kRows; row += kRowsAtOnce) {
      const CachedRoot old = latest(*table);
      EXPECT_FALSE(old.patched);
      insert(id, row, row + kRowsAtOnce);
      const CachedRoot now = latest(*table);
      for (uint64_t place = 0; old.bits == now.bits && place < now.groups.size(); place++) {
        if (old.groups[place] == now.groups[place]) continue;
        table->roots[0] = old;
        const uint64_t reads = counters_.reads;
        ASSERT_TRUE(tables().refresh_group(*table, 0, place, counters_).ok());
        EXPECT_EQ(reads + 2, counters_.reads) << "the array is read whole";
        EXPECT_EQ(now.groups[place], TableCache::group_of(*table, 0, place));
        EXPECT_TRUE(table->roots[0].patched);
        if (refreshed++ > 0) continue;
        EXPECT_EQ(scanned(id), static_cast<size_t>(row + kRowsAtOnce));
        EXPECT_FALSE(table->roots[0].patched) << "a scan takes it for a copy of one moment";
      }
    }
    EXPECT_GT(refreshed, 0) << "no group was split without the array";
  });
}

}  // namespace
}  // namespace rdmacc
