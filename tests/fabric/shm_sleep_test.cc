#include <pthread.h>
#include <signal.h>
#include <sys/times.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/fabric/fabric_harness.h"

// An idle worker sleeps, and everything that it waits for wakes it.

namespace rdmacc {
namespace {

class ShmSleep : public testing::Test {
 protected:
  ~ShmSleep() override {
    fabric.reset();
    ShmFabric::destroy(name);
  }

  const std::string name = unique_cluster();
  // Waits so long that a lost wake-up shows.
  std::unique_ptr<ShmFabric> fabric = std::move(*ShmFabric::create(
      name, Topology{.nodes = 1, .region_bytes = 1 << 20}, ShmOptions{.wait_us_max = 10'000'000}));
};

TEST_F(ShmSleep, AnIdleEndpointSleeps) {
  auto endpoint = fabric->join();
  ASSERT_TRUE(endpoint.ok());
  Endpoint& e = **endpoint;
  struct tms before, after;
  times(&before);
  const uint64_t until_us = e.now_us() + 300'000;
  uint64_t wakes = 0;
  while (e.now_us() < until_us) {
    e.wait(until_us);
    e.poll();
    ++wakes;
  }
  times(&after);
  EXPECT_LT(wakes, 50u);
  EXPECT_LE(after.tms_utime + after.tms_stime - before.tms_utime - before.tms_stime, 10);
}

TEST_F(ShmSleep, ADatagramEndsASleep) {
  auto receiver = std::move(*fabric->join_as_node(0, 0));
  auto sender = std::move(*fabric->join());
  std::atomic<bool> received = false;
  receiver->set_datagram_handler([&](WorkerId, std::span<const std::byte>) { received = true; });
  const uint64_t start_us = receiver->now_us();
  const std::byte byte{1};
  EXPECT_TRUE(sender->send(0, {&byte, 1}));
  receiver->wait(UINT64_MAX);  // it is there already
  receiver->poll();
  EXPECT_TRUE(received.exchange(false));
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(sender->send(0, {&byte, 1}));
  });
  for (int i = 0; i < 100 && !received; ++i) {
    receiver->wait(start_us + 10'000'000);
    receiver->poll();
  }
  thread.join();
  EXPECT_TRUE(received);
  EXPECT_LT(receiver->now_us() - start_us, 5'000'000u);
}

TEST_F(ShmSleep, AQuietDatagramIsThereWhenASleepEnds) {
  auto receiver = std::move(*fabric->join_as_node(0, 0));
  auto sender = std::move(*fabric->join());
  int received = 0;
  receiver->set_datagram_handler([&](WorkerId, std::span<const std::byte>) { ++received; });
  const std::byte byte{1};
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(sender->send_quietly(0, {&byte, 1}));
    EXPECT_TRUE(sender->send(0, {&byte, 1}));
  });
  for (int i = 0; i < 100 && received < 2; ++i) {
    receiver->wait(receiver->now_us() + 1'000'000);
    receiver->poll();
  }
  thread.join();
  EXPECT_EQ(received, 2);
}

TEST_F(ShmSleep, WakeEndsASleepOfThisOrTheNextWait) {
  auto endpoint = std::move(*fabric->join());
  const uint64_t start_us = endpoint->now_us();
  endpoint->wake();
  endpoint->wait(UINT64_MAX);
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    endpoint->wake();
  });
  endpoint->wait(UINT64_MAX);
  thread.join();
  EXPECT_LT(endpoint->now_us() - start_us, 5'000'000u);
}

TEST_F(ShmSleep, ASignalEndsASleep) {
  auto endpoint = std::move(*fabric->join());
  struct sigaction action = {}, old;
  action.sa_handler = [](int) {};
  ASSERT_EQ(0, sigaction(SIGUSR1, &action, &old));
  const uint64_t start_us = endpoint->now_us();
  const pthread_t self = pthread_self();
  std::thread thread([self] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(self, SIGUSR1);
  });
  endpoint->wait(UINT64_MAX);
  thread.join();
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_LT(endpoint->now_us() - start_us, 5'000'000u);
}

}  // namespace
}  // namespace rdmacc
