// What a worker knows of a table lives as long as one of its coroutines may hold it.
#include "engine/coordinator_impl.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

TEST(TableCacheTest, ADroppedTableLivesWhileOthersMayHoldIt) {
  SimEngine engine(4);
  Coordinator& coordinator = engine.add_coordinator();
  Scheduler& scheduler = coordinator.worker().scheduler();
  bool other_ended = false;
  engine.run(coordinator, [&] {
    Session session(coordinator);
    TableSpec spec;
    spec.relfilenode = 1;
    const TableId id = session.create_table(spec)->id;
    TableCache& tables = coordinator.impl().state.engine.tables;
    VerbCounters counters;
    CachedTable* held = *tables.get(id, counters);
    ASSERT_TRUE(tables.load_root(*held, 0, false, counters).ok());
    ASSERT_TRUE(scheduler.spawn([&] {
      scheduler.sleep_for(1'000'000);
      other_ended = true;
    }));
    ASSERT_TRUE(session.drop_table(id).ok());
    EXPECT_EQ(id, held->id);
    EXPECT_EQ(0u, held->roots[0].bits) << "what is held names no group any more";
    spec.relfilenode = 2;
    const TableId next = session.create_table(spec)->id;
    EXPECT_NE(held, *tables.get(next, counters)) << "its memory is used again";
    EXPECT_FALSE(tables.get(id, counters).ok());
    while (!other_ended) scheduler.sleep_for(100'000);
  });
}

// A split that leaves the array as large as it was changes some places of it: one of them is asked.
TEST(TableCacheTest, AGroupThatWasSplitIsFoundByOnePlaceOfTheArray) {
  SimEngine engine(4);
  Coordinator& coordinator = engine.add_coordinator();
  engine.run(coordinator, [&] {
    Session session(coordinator);
    TableSpec spec;
    spec.relfilenode = 1;
    const TableId id = session.create_table(spec)->id;
    TableCache& tables = coordinator.impl().state.engine.tables;
    VerbCounters counters;
    CachedTable* table = *tables.get(id, counters);
    constexpr int kRows = 4'000, kRowsAtOnce = 20;
    int refreshed = 0;
    for (int row = 0; row < kRows; row += kRowsAtOnce) {
      ASSERT_TRUE(tables.load_root(*table, 0, true, counters).ok());
      EXPECT_FALSE(table->roots[0].patched);
      CachedRoot& before = table->roots[0];
      const CachedRoot old = before;
      ASSERT_TRUE(session.begin(TxnOptions{}).ok());
      for (int i = row; i < row + kRowsAtOnce; i++) {
        ASSERT_TRUE(session.insert(id, "row " + std::to_string(i), "row").ok());
      }
      ASSERT_TRUE(session.commit().ok());
      ASSERT_TRUE(tables.load_root(*table, 0, true, counters).ok());
      const CachedRoot now = before;
      for (uint64_t place = 0; old.bits == now.bits && place < now.groups.size(); place++) {
        if (old.groups[place] == now.groups[place]) continue;
        before = old;
        const uint64_t reads = counters.reads;
        ASSERT_TRUE(tables.refresh_group(*table, 0, place, counters).ok());
        EXPECT_EQ(reads + 2, counters.reads) << "the array is read whole";
        EXPECT_EQ(now.groups[place], TableCache::group_of(*table, 0, place));
        EXPECT_TRUE(before.patched) << "a scan takes it for a copy of one moment";
        refreshed++;
      }
    }
    EXPECT_GT(refreshed, 0) << "no group was split without the array";
  });
}

}  // namespace
}  // namespace rdmacc
