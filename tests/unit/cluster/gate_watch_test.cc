#include "engine/cluster/gate_watch.h"

#include "tests/unit/cluster/gate_cluster.h"

namespace rdmacc {
namespace {

constexpr uint64_t kEventsMax = 20'000'000;
constexpr uint64_t kLongUs = 60'000'000;
constexpr ProtocolId kProtocol = 1;

// One user watches while another does what a test wants.
class GateWatchTest : public testing::Test {
 protected:
  void run(GateUser& user, const std::function<void()>& task) { run_on(user.worker, task); }
  void run_on(Worker& worker, const std::function<void()>& task) {
    bool done = false;
    ASSERT_TRUE(worker.scheduler().spawn([&] {
      task();
      done = true;
    }));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return done; }, kEventsMax));
  }
  void enter(GateUser& user, GateEntry& entry) {
    run(user, [&] {
      const uint64_t deadline_us = user.worker.endpoint().now_us() + kLongUs;
      ASSERT_TRUE(user.gate.enter(kProtocol, deadline_us, nullptr, counters_, entry).ok());
    });
  }
  // As a transaction does, which draws its ctts when it is inside.
  void enter_and_leave(GateUser& user) {
    GateEntry entry;
    enter(user, entry);
    run(user, [&] {
      user.clock.next();
      user.gate.leave(entry);
      user.worker.scheduler().sleep_for(1'000);
    });
  }
  void begin() {
    run(reader_, [&] { watch_.begin(reader_.gate, counters_); });
  }
  bool still_alone() {
    bool alone = false;
    run(reader_, [&] { alone = watch_.still_alone(counters_); });
    return alone;
  }

  GateCluster cluster_{11, 2};
  GateUser& reader_ = cluster_.user(0);
  GateUser& other_ = cluster_.user(1);
  GateEntry entry_;
  VerbCounters counters_;
  GateWatch watch_;
};

TEST_F(GateWatchTest, FindsTheTransactionAlone) {
  enter_and_leave(other_);
  enter(reader_, entry_);
  begin();
  EXPECT_TRUE(watch_.begun());
  EXPECT_TRUE(still_alone());
}

TEST_F(GateWatchTest, DoesNotBeginWhileAnotherIsInside) {
  GateEntry of_other;
  enter(other_, of_other);
  enter(reader_, entry_);
  begin();
  EXPECT_FALSE(watch_.begun());
  EXPECT_FALSE(still_alone());
}

TEST_F(GateWatchTest, NoticesOneThatIsInsideNow) {
  enter(reader_, entry_);
  begin();
  GateEntry of_other;
  enter(other_, of_other);
  EXPECT_FALSE(still_alone());
}

TEST_F(GateWatchTest, NoticesOneThatHasComeAndGone) {
  enter_and_leave(other_);
  enter(reader_, entry_);
  begin();
  enter_and_leave(other_);
  EXPECT_FALSE(still_alone());
}

TEST_F(GateWatchTest, NoticesOneOfTheSameWorker) {
  enter(reader_, entry_);
  begin();
  GateEntry second;
  enter(reader_, second);
  run(reader_, [&] { reader_.gate.leave(second); });
  EXPECT_FALSE(still_alone());
}

// A worker that has died inside leaves the ctts that it had told before.
TEST_F(GateWatchTest, NoticesOneWhoseLineWasCleared) {
  enter_and_leave(other_);
  enter(reader_, entry_);
  begin();
  GateEntry of_other;
  enter(other_, of_other);
  cluster_.kill(other_);
  run_on(cluster_.node(), [&] { cluster_.resolve_departed(); });
  EXPECT_EQ(cluster_.line_of(other_).inside, 0u);
  EXPECT_FALSE(still_alone());
}

// The words of a line are read one after the other: `inside` from before the other has entered must
// not come with a ctts of its commit. A waiter of the same worker tells the line in between.
TEST(GateWatchRaceTest, FirstLookIsNotTornWithinALine) {
  constexpr uint64_t kSeeds = 4'000;  // two of them find a look that reads `inside` first
  for (uint64_t seed = 1; seed <= kSeeds; seed++) {
    GateCluster cluster(seed, 2);
    GateUser& reader = cluster.user(0);
    GateUser& other = cluster.user(1);
    VerbCounters counters;
    GateEntry entry, of_other, of_waiter;
    const auto start = [](GateUser& user, const std::function<void()>& task) {
      CHECK(user.worker.scheduler().spawn(task));
    };
    const auto enter = [&](GateUser& user, GateEntry& into) {
      const uint64_t deadline_us = user.worker.endpoint().now_us() + kLongUs;
      CHECK(user.gate.enter(kProtocol, deadline_us, nullptr, counters, into).ok());
    };
    bool ready = false;
    start(reader, [&] { enter(reader, entry); });
    start(other, [&] {
      enter(other, of_other);
      other.clock.next();
      other.gate.leave(of_other);
      other.worker.scheduler().sleep_for(1'000);
      ready = true;
    });
    ASSERT_TRUE(cluster.fabric().run_until([&] { return ready && entry.inside; }, kEventsMax));

    GateWatch watch;
    bool looked = false, installed_after_look = false, left = false, waited = false, cancel = false;
    start(other, [&] {
      other.worker.scheduler().sleep_for(seed % 23);
      enter(other, of_other);
      other.clock.next();
      other.clock.next();  // the stamp of what it installs
      start(other, [&] {
        const uint64_t deadline_us = other.worker.endpoint().now_us() + kLongUs;
        static_cast<void>(
            other.gate.enter(kProtocol + 1, deadline_us, &cancel, counters, of_waiter));
        waited = true;
      });
      other.worker.scheduler().sleep_for(200);
      installed_after_look = looked;
      other.gate.leave(of_other);
      left = true;
    });
    start(reader, [&] {
      reader.worker.scheduler().sleep_for(seed % 19);
      watch.begin(reader.gate, counters);
      looked = true;
    });
    ASSERT_TRUE(cluster.fabric().run_until([&] { return looked && left; }, kEventsMax));
    bool alone = false, ended = false;
    start(reader, [&] {
      reader.worker.scheduler().sleep_for(3'000);
      alone = watch.still_alone(counters);
      cancel = true;
      reader.gate.leave(entry);
      ended = true;
    });
    ASSERT_TRUE(cluster.fabric().run_until([&] { return ended && waited; }, kEventsMax));
    ASSERT_FALSE(alone && installed_after_look) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rdmacc
