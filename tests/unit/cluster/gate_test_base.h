#pragma once
#include <functional>

#include "tests/unit/cluster/gate_cluster.h"

namespace rdmacc {

constexpr uint64_t kEventsMax = 20'000'000;
constexpr uint64_t kLongUs = 60'000'000;
constexpr uint64_t kSoonUs = 3 * Gate::kHoldOffUs;  // every waiter that can get in has by then

struct Held {
  GateEntry entry;
  Status status;
  bool ended = false;  // enter() has returned
  bool inside() const { return ended && status.ok(); }
};

// Coordinators that enter and leave the gate in turns, in simulated time.
class GateTest : public testing::Test {
 protected:
  // Coroutines that still wait refer to what the tests hold.
  ~GateTest() override {
    for (size_t i = 0; i < cluster_.users(); ++i) {
      if (!cluster_.user(i).killed) cluster_.user(i).worker.scheduler().unwind();
    }
  }

  void start(size_t user, ProtocolId protocol, bool exclusive, Held& held,
             uint64_t wait_us = kLongUs) {
    GateUser& by = cluster_.user(user);
    CHECK(by.worker.scheduler().spawn([&by, protocol, exclusive, &held, wait_us] {
      VerbCounters counters;
      const uint64_t deadline_us = by.worker.endpoint().now_us() + wait_us;
      held.status =
          exclusive ? by.gate.enter_exclusive(protocol, deadline_us, nullptr, counters, held.entry)
                    : by.gate.enter(protocol, deadline_us, nullptr, counters, held.entry);
      held.ended = true;
    }));
  }
  void enter(size_t user, ProtocolId protocol, bool exclusive, Held& held) {
    start(user, protocol, exclusive, held);
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return held.ended; }, kEventsMax));
    ASSERT_TRUE(held.status.ok());
  }
  void leave(size_t user, Held& held) { cluster_.user(user).gate.leave(held.entry); }
  void run(Worker& worker, const std::function<void()>& task) {
    bool done = false;
    ASSERT_TRUE(worker.scheduler().spawn([&] {
      task();
      done = true;
    }));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return done; }, kEventsMax));
  }
  void run_for(uint64_t us) {
    run(cluster_.node(), [&] { cluster_.node().scheduler().sleep_for(us); });
  }
  void kill(size_t user) {
    cluster_.kill(cluster_.user(user));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return !cluster_.fabric().departed().empty(); },
                                            kEventsMax));
  }
  void resolve() {
    run(cluster_.node(), [&] { cluster_.resolve_departed(); });
  }
  WorkerId id(size_t user) { return cluster_.user(user).worker.id(); }
  GateWord word() { return GateWord::unpack(cluster_.gate_line().word); }
  uint64_t exclusive_entries() { return cluster_.gate_line().exclusive_entries; }

  GateCluster cluster_{1, 4};
};

}  // namespace rdmacc
