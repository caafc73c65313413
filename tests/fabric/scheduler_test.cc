#include <memory>

#include "tests/fabric/fabric_harness.h"

namespace rdmacc {
namespace {

HarnessOptions eight_coroutines() {
  HarnessOptions options;
  options.scheduler.coroutines_max = 8;
  return options;
}

class SchedulerOn : public testing::TestWithParam<FabricKind> {
 protected:
  FabricHarness cluster{GetParam(), eight_coroutines()};
  Worker& worker = cluster.coordinator(0);
  Scheduler& scheduler = worker.scheduler();
};

INSTANTIATE_TEST_SUITE_P(Fabrics, SchedulerOn, testing::ValuesIn(every_fabric()), fabric_kind_name);

TEST_P(SchedulerOn, SpawnRunsInALaterStep) {
  bool ran = false;
  ASSERT_TRUE(scheduler.spawn([&] {
    EXPECT_TRUE(scheduler.in_coroutine());
    ran = true;
  }));
  EXPECT_FALSE(ran);
  EXPECT_FALSE(scheduler.quiet());
  EXPECT_EQ(1u, scheduler.busy_coroutines());
  ASSERT_TRUE(cluster.run_until([&] { return ran; }));
  EXPECT_TRUE(scheduler.quiet());
  EXPECT_FALSE(scheduler.in_coroutine());
  EXPECT_EQ(0u, scheduler.busy_coroutines());
}

TEST_P(SchedulerOn, CoroutinesAreBounded) {
  int ran = 0;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(scheduler.spawn([&] { ++ran; }));
  EXPECT_FALSE(scheduler.spawn([&] { ++ran; }));
  ASSERT_TRUE(cluster.run_until([&] { return ran == 8; }));
  EXPECT_TRUE(scheduler.spawn([] {}));
}

TEST_P(SchedulerOn, YieldLetsTheOthersRunInTurn) {
  std::string order;
  cluster.run({{&worker,
                [&] {
                  order += 'a';
                  scheduler.yield();
                  order += 'a';
                }},
               {&worker, [&] {
                  order += 'b';
                  scheduler.yield();
                  order += 'b';
                }}});
  EXPECT_EQ("abab", order);
}

TEST_P(SchedulerOn, OneThatStaysLetsOthersRunOnlyWhenItIsTold) {
  std::string order;
  cluster.run({{&worker,
                [&] {
                  scheduler.stay(true);
                  for (int i = 0; i < 100; ++i) scheduler.count_round();
                  scheduler.yield_to_ready();
                  order += 'a';
                  scheduler.stay(false);
                  scheduler.yield_to_ready();
                  order += 'c';
                }},
               {&worker, [&] { order += 'b'; }}});
  EXPECT_EQ("abc", order);
}

TEST_P(SchedulerOn, OneThatStaysDoesSoAgainAfterAWait) {
  std::string order;
  cluster.run({{&worker,
                [&] {
                  scheduler.stay(true);
                  order += 'a';
                  scheduler.yield();
                  scheduler.yield_to_ready();
                  order += 'a';
                }},
               {&worker, [&] {
                  order += 'b';
                  scheduler.yield();
                  scheduler.yield_to_ready();
                  order += 'b';
                }}});
  EXPECT_EQ("abab", order);
}

TEST_P(SchedulerOn, NoneStaysForEver) {
  std::string order;
  cluster.run({{&worker,
                [&] {
                  scheduler.stay(true);
                  for (int i = 0; i < 1'000; ++i) scheduler.count_round();
                  order += 'a';
                }},
               {&worker, [&] { order += 'b'; }}});
  EXPECT_EQ("ba", order);
}

TEST_P(SchedulerOn, StayingEndsWithItsTask) {
  std::string order;
  cluster.run({{&worker, [&] { scheduler.stay(true); }}});
  cluster.run({{&worker,
                [&] {
                  order += 'a';
                  scheduler.yield_to_ready();
                  order += 'c';
                }},
               {&worker, [&] { order += 'b'; }}});
  EXPECT_EQ("abc", order);
}

TEST_P(SchedulerOn, ProgressIsWhatNoTimerMade) {
  const uint64_t before = scheduler.progress();
  cluster.run({{&worker, [&] { scheduler.sleep_for(100); }}});
  EXPECT_EQ(before, scheduler.progress());
  cluster.run({{&worker, [&] { scheduler.yield(); }}});
  EXPECT_EQ(before + 1, scheduler.progress());
}

TEST_P(SchedulerOn, MeterCountsTheTimeThatTheCoroutineRuns) {
  constexpr uint64_t kOwnNs = 1'000'000, kOtherNs = 5'000'000;
  Endpoint& endpoint = worker.endpoint();
  const auto compute = [&](uint64_t ns) {
    if (cluster.simulated()) return;  // there time passes for what sleeps alone
    for (const uint64_t until = endpoint.now_ns() + ns; endpoint.now_ns() < until;) continue;
  };
  uint64_t ran_ns = 0, elapsed_ns = 0;
  bool other_ran = false;
  cluster.run({{&worker,
                [&] {
                  const uint64_t begin_ns = endpoint.now_ns();
                  scheduler.meter(&ran_ns);
                  compute(kOwnNs);
                  while (!other_ran) scheduler.yield();
                  scheduler.sleep_for(2'000);
                  scheduler.meter(nullptr);
                  elapsed_ns = endpoint.now_ns() - begin_ns;
                  compute(kOwnNs);
                }},
               {&worker, [&] {
                  compute(kOtherNs);
                  other_ran = true;
                }}});
  EXPECT_GE(elapsed_ns, ran_ns + 1'999'000 + (cluster.simulated() ? 0 : kOtherNs));
  EXPECT_GE(ran_ns, cluster.simulated() ? 0 : kOwnNs);
}

TEST_P(SchedulerOn, MeterEndsWithItsTask) {
  auto ran_ns = std::make_unique<uint64_t>(0);
  cluster.run({{&worker, [&] { scheduler.meter(ran_ns.get()); }}});
  ran_ns.reset();  // what still counted would write to freed memory
  cluster.run({{&worker, [&] { scheduler.yield(); }}});
}

TEST_P(SchedulerOn, TimersFireInTheOrderOfTheirDeadlines) {
  std::string order;
  uint64_t late_by_us = 0;
  const auto sleeper = [&](char name, uint64_t us) {
    return [&, name, us] {
      const uint64_t deadline_us = worker.endpoint().now_us() + us;
      scheduler.sleep_until(deadline_us);
      EXPECT_GE(worker.endpoint().now_us(), deadline_us);
      late_by_us = worker.endpoint().now_us() - deadline_us;
      order += name;
    };
  };
  EXPECT_EQ(UINT64_MAX, scheduler.next_timer_us());
  cluster.run({{&worker, sleeper('c', 9000)},
               {&worker, sleeper('a', 3000)},
               {&worker, sleeper('b', 6000)}});
  EXPECT_EQ("abc", order);
  EXPECT_LT(late_by_us, 5'000'000u);
}

TEST_P(SchedulerOn, CallbacksRunOutsideCoroutines) {
  bool called = false;
  scheduler.call_at(worker.endpoint().now_us() + 100, [&] {
    EXPECT_FALSE(scheduler.in_coroutine());
    EXPECT_TRUE(scheduler.stepping());
    called = true;
  });
  ASSERT_TRUE(cluster.run_until([&] { return called; }));
}

TEST_P(SchedulerOn, AwaitReturnsAtOnceWhenNothingIsOutstanding) {
  cluster.run(worker, [&] {
    Completion completion;
    scheduler.await(completion);
  });
}

TEST_P(SchedulerOn, AwaitWaitsForTheLastOne) {
  Completion completion;
  completion.outstanding = 2;
  bool awaited = false;
  ASSERT_TRUE(scheduler.spawn([&] {
    scheduler.await(completion);
    awaited = true;
  }));
  cluster.run(worker, [&] { completion.finish_one(); });
  EXPECT_FALSE(awaited);
  completion.finish_one();  // from outside any step
  ASSERT_TRUE(cluster.run_until([&] { return awaited; }));
}

TEST_P(SchedulerOn, EightCoroutinesCarryTenThousandTasks) {
  constexpr int kTasks = 10'000;
  int started = 0, ended = 0;
  const auto refill = [&] {
    while (started < kTasks && scheduler.spawn([&] {
      if (ended % 3 == 0) scheduler.yield();
      ++ended;
    })) {
      ++started;
    }
  };
  ASSERT_TRUE(cluster.run_until([&] {
    refill();
    return ended == kTasks;
  }));
  EXPECT_EQ(0u, scheduler.busy_coroutines());
}

struct CountsDestruction {
  int& destroyed;
  ~CountsDestruction() { ++destroyed; }
};

TEST_P(SchedulerOn, UnwindRunsDestructorsAndResumesNobody) {
  int destroyed = 0, resumed = 0;
  Completion never;
  never.outstanding = 1;
  const auto suspended = [&](auto wait) {
    return [&destroyed, &resumed, wait] {
      const CountsDestruction outer{destroyed};
      auto on_heap = std::make_unique<CountsDestruction>(CountsDestruction{destroyed});
      --destroyed;  // the temporary's
      wait();
      ++resumed;
    };
  };
  int asleep = 0;
  ASSERT_TRUE(scheduler.spawn(suspended([&] { ++asleep, scheduler.await(never); })));
  ASSERT_TRUE(scheduler.spawn(suspended([&] { ++asleep, scheduler.sleep_for(1u << 30); })));
  ASSERT_TRUE(cluster.run_until([&] { return asleep == 2; }));
  ASSERT_TRUE(scheduler.spawn([&] { ++resumed; }));  // never started
  scheduler.unwind();
  EXPECT_EQ(4, destroyed);
  EXPECT_EQ(0, resumed);
  EXPECT_EQ(0u, scheduler.busy_coroutines());
  EXPECT_EQ(UINT64_MAX, scheduler.next_timer_us());
  cluster.run(worker, [&] { ++resumed; });  // and it can be used again
  EXPECT_EQ(1, resumed);
}

TEST_P(SchedulerOn, ALeftWorkerUnwindsItsCoroutines) {
  int destroyed = 0;
  bool asleep = false;
  Worker& other = cluster.start_coordinator();
  ASSERT_TRUE(other.scheduler().spawn([&] {
    const CountsDestruction outer{destroyed};
    VerbArena arena(other.pool());
    DoorbellBatch batch(other.scheduler(), other.counters());
    batch.read(GlobalAddress::make(0, 0), arena.allocate(64), 64);
    asleep = true;
    CHECK(batch.execute().ok());
    other.scheduler().sleep_for(1u << 30);
  }));
  ASSERT_TRUE(cluster.run_until([&] { return asleep; }));
  cluster.stop(other);
  EXPECT_EQ(1, destroyed);
}

}  // namespace
}  // namespace rdmacc
