// Slots of transactions: what others leave of a time, what is fixed, and what ended ones leave.
#include "engine/cluster/txn_slots.h"

#include <functional>

#include "tests/unit/cluster/gate_cluster.h"

namespace rdmacc {
namespace {

class TxnSlotsTest : public testing::Test {
 protected:
  struct User {
    User(GateUser& user, const Topology& topology)
        : worker(user.worker), clock(user.clock), slots(user.worker, topology) {}
    Worker& worker;
    TimestampClock& clock;
    TxnSlots slots;
  };

  TxnSlotsTest()
      : reader_(cluster_.user(0), cluster_.topology()),
        writer_(cluster_.user(1), cluster_.topology()) {}

  void as(User& user, const std::function<void(VerbArena&)>& body) {
    bool done = false;
    CHECK(user.worker.scheduler().spawn([&] {
      VerbArena arena(user.worker.pool());
      body(arena);
      done = true;
    }));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return done; }, 1'000'000));
  }
  uint64_t begin(User& user) {
    const uint64_t ctts = user.slots.draw(user.clock);
    as(user, [&](VerbArena& arena) { EXPECT_TRUE(user.slots.open(ctts, arena, counters_).ok()); });
    return ctts;
  }
  uint64_t fix(User& user, uint64_t ctts, uint64_t time) {
    uint64_t latest = 0;
    as(user, [&](VerbArena& arena) {
      EXPECT_TRUE(user.slots.fix(ctts, time, arena, counters_, latest).ok());
    });
    return latest;
  }
  // The latest time that is fixed; `running`: the latest that is left to the others.
  uint64_t bound(User& user, std::vector<uint64_t> others, uint64_t time, uint64_t running) {
    TxnSlots::Bounded result;
    as(user, [&](VerbArena& arena) {
      EXPECT_TRUE(user.slots.bound(others, time, arena, counters_, result).ok());
    });
    EXPECT_EQ(result.running, running);
    return result.fixed;
  }

  GateCluster cluster_{1, 2};
  VerbCounters counters_;
  User reader_, writer_;
};

TEST_F(TxnSlotsTest, WhatIsFixedFirstStays) {
  const uint64_t ctts = begin(reader_);
  EXPECT_EQ(fix(reader_, ctts, 12), 12u);
  EXPECT_EQ(bound(writer_, {ctts}, 10, 0), 12u) << "the writer has to come behind it";
}

TEST_F(TxnSlotsTest, WhatIsBoundFirstStays) {
  const uint64_t ctts = begin(reader_);
  EXPECT_EQ(bound(writer_, {ctts}, 10, 9), 0u);
  EXPECT_EQ(fix(reader_, ctts, 12), 9u);
  EXPECT_EQ(bound(writer_, {ctts}, 300, 9), 0u) << "it is early enough";
  EXPECT_EQ(fix(reader_, ctts, 12), 9u);
  EXPECT_EQ(bound(writer_, {ctts}, 7, 6), 0u);
  EXPECT_EQ(fix(reader_, ctts, 9), 6u);
  EXPECT_EQ(fix(reader_, ctts, 6), 6u);
}

TEST_F(TxnSlotsTest, AnEndedOneIsFollowed) {
  const uint64_t first = begin(reader_);
  EXPECT_EQ(bound(writer_, {first}, 10, 9), 0u);
  EXPECT_EQ(fix(reader_, first, 9), 9u);
  reader_.slots.give_back(first);
  EXPECT_EQ(bound(writer_, {first}, 5, 0), 9u) << "its slot is still its own";
  // The same slot again: the next one that has it.
  uint64_t next = 0;
  const RegionLayout layout(cluster_.topology());
  do {
    if (next != 0) reader_.slots.give_back(next);
    next = reader_.slots.draw(reader_.clock);
  } while (layout.txn_slot(next) != layout.txn_slot(first));
  as(reader_,
     [&](VerbArena& arena) { EXPECT_TRUE(reader_.slots.open(next, arena, counters_).ok()); });
  EXPECT_EQ(bound(writer_, {first}, 5, 0), 9u);
  // A spurious bound does no harm but to the transaction that has it.
  EXPECT_EQ(fix(reader_, next, 20), 4u);
}

// What its id has fixed before is followed still, when another coordinator has the id.
TEST_F(TxnSlotsTest, TheNextWithTheIdGoesOn) {
  const uint64_t first = begin(reader_);
  EXPECT_EQ(fix(reader_, first, 50), 50u);
  User again(cluster_.user(0), cluster_.topology());
  uint64_t next = 0;
  const RegionLayout layout(cluster_.topology());
  do {
    if (next != 0) again.slots.give_back(next);
    next = again.slots.draw(again.clock);
  } while (layout.txn_slot(next) != layout.txn_slot(first));
  as(again, [&](VerbArena& arena) { EXPECT_TRUE(again.slots.open(next, arena, counters_).ok()); });
  EXPECT_EQ(fix(again, next, 3), 3u);
  EXPECT_EQ(bound(writer_, {first}, 2, 0), 50u);
}

TEST_F(TxnSlotsTest, ASlotHasOneOwner) {
  std::vector<uint64_t> drawn;
  for (uint64_t i = 0; i < 4 * kTxnSlotsPerWorker; ++i) {
    const uint64_t ctts = reader_.slots.draw(reader_.clock);
    if (reader_.slots.has(ctts)) drawn.push_back(ctts);
  }
  EXPECT_EQ(drawn.size(), kTxnSlotsPerWorker);
  const uint64_t before = reader_.clock.last();
  const uint64_t without = reader_.slots.draw(reader_.clock);
  EXPECT_FALSE(reader_.slots.has(without));
  EXPECT_LE((reader_.clock.last() - before) >> 16, 2u) << "the clock is not moved far";
  reader_.slots.give_back(without);  // not its to give
  EXPECT_TRUE(std::all_of(drawn.begin(), drawn.end(),
                          [&](uint64_t ctts) { return reader_.slots.has(ctts); }));
}

TEST_F(TxnSlotsTest, WhatIsNoTransactionIsLeftAlone) {
  EXPECT_EQ(bound(writer_, {(900ull << 16) | 0xFFFF}, 5, 0), 0u);
}

// Each order of the two CASes: both never have their way.
TEST_F(TxnSlotsTest, OneOfTwoComesFirst) {
  for (int i = 0; i < 200; ++i) {
    const uint64_t ctts = begin(reader_);
    uint64_t latest = 0;
    TxnSlots::Bounded bounded;
    int done = 0;
    CHECK(reader_.worker.scheduler().spawn([&] {
      VerbArena arena(reader_.worker.pool());
      EXPECT_TRUE(reader_.slots.fix(ctts, 12, arena, counters_, latest).ok());
      ++done;
    }));
    CHECK(writer_.worker.scheduler().spawn([&] {
      VerbArena arena(writer_.worker.pool());
      const std::vector<uint64_t> others{ctts};
      EXPECT_TRUE(writer_.slots.bound(others, 10, arena, counters_, bounded).ok());
      ++done;
    }));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return done == 2; }, 1'000'000));
    EXPECT_EQ(latest == 12, bounded.fixed >= 12) << latest << " " << bounded.fixed;
    reader_.slots.give_back(ctts);
  }
}

}  // namespace
}  // namespace rdmacc
