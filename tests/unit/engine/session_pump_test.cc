// A caller without a coroutine waits only while nothing can be done.
#include <gtest/gtest.h>

#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

TEST(SessionPumpTest, DoesNotSleepWhileItsCommandCanGoOn) {
  SimEngine engine(4);
  Coordinator& coordinator = engine.add_coordinator();
  SessionPump pump(coordinator);
  Scheduler& scheduler = coordinator.worker().scheduler();
  pump.start([&] {
    for (int i = 0; i < 3; i++) scheduler.yield();
    return Status();
  });
  const uint64_t before = pump.progress();
  int waits = 0;
  while (!pump.resume()) {
    ASSERT_LT(++waits, 10);
    pump.wait(1'000'000);  // the simulator refuses to sleep
  }
  EXPECT_EQ(3, waits);
  EXPECT_EQ(before + 3, pump.progress());
}

}  // namespace
}  // namespace rdmacc
