#include "rdma/shm/shm_region.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>

#include "rdma/shm/shm_control.h"

namespace rdmacc {
namespace {

constexpr uint64_t kBytes = 64ull << 20;

class ShmRegionTest : public testing::Test {
 protected:
  ShmRegionTest() {
    topology_.nodes = 1;
    topology_.region_bytes = kBytes;
  }
  ~ShmRegionTest() override { shm_unlink(shm_region_name(cluster_, 0).c_str()); }

  const std::string cluster_ = "region_test_" + std::to_string(getpid());
  Topology topology_;
};

TEST_F(ShmRegionTest, WhatIsBackedAheadIsBackedWhenItIsAskedFor) {
  ShmRegions regions(cluster_, topology_, /*huge_pages=*/true);
  ASSERT_TRUE(regions.make(0).ok());
  constexpr uint64_t kPart = 4ull << 20;
  for (uint64_t at = 0; at < kBytes; at += kPart) {
    ASSERT_TRUE(regions.back(0, at, kPart).ok()) << at;
    regions.back_ahead(0, at + kPart, 3 * kPart);  // past the end, too: a hint that is not followed
    memset(regions.at(0) + at, static_cast<int>(at / kPart), kPart);
  }
  for (uint64_t at = 0; at < kBytes; at += kPart) {
    EXPECT_EQ(static_cast<int>(at / kPart), static_cast<int>(regions.at(0)[at])) << at;
    EXPECT_EQ(static_cast<int>(at / kPart), static_cast<int>(regions.at(0)[at + kPart - 1])) << at;
  }
  EXPECT_EQ(Code::kNoSpace, regions.back(0, kBytes, 8).code());
}

// What was backed ahead is of one range: others are backed when they are asked for.
TEST_F(ShmRegionTest, OtherRangesAreBackedStill) {
  ShmRegions regions(cluster_, topology_, /*huge_pages=*/false);
  ASSERT_TRUE(regions.make(0).ok());
  regions.back_ahead(0, 32ull << 20, 8ull << 20);
  for (const uint64_t megabytes : {0, 24, 36, 56}) {
    const uint64_t at = megabytes << 20;
    ASSERT_TRUE(regions.back(0, at, 8ull << 20).ok()) << at;
    memset(regions.at(0) + at, 7, 8ull << 20);
  }
}

TEST_F(ShmRegionTest, EndsWhileItBacksAhead) {
  for (int round = 0; round < 20; ++round) {
    ShmRegions regions(cluster_, topology_, /*huge_pages=*/true);
    ASSERT_TRUE(regions.make(0).ok());
    regions.back_ahead(0, 0, kBytes);
  }
}

TEST(BackingThreadTest, DoesTheNewestThingNext) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> done;
  bool begun = false, goes_on = false;
  BackingThread thread;
  const auto note = [&](int what) {
    std::unique_lock<std::mutex> lock(mutex);
    done.push_back(what);
    begun = true;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(10), [&] { return goes_on; });
  };
  thread.ask([&] { note(1); });
  {
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return begun; }));
    thread.ask([&] { note(2); });  // replaced before it began
    thread.ask([&] { note(3); });
    goes_on = true;
    changed.notify_all();
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return done.size() == 2; }));
    EXPECT_EQ((std::vector<int>{1, 3}), done);
  }
}

}  // namespace
}  // namespace rdmacc
