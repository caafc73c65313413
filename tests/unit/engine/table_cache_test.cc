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

}  // namespace
}  // namespace rdmacc
