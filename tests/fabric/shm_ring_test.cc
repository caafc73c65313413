#include "rdma/shm/shm_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "rdma/base/random.h"
#include "rdma/shm/shm_control.h"

namespace rdmacc {
namespace {

TEST(ShmRing, HoldsEveryLengthInOrderUnderTwoThreads) {
  auto* memory = static_cast<std::byte*>(mmap(
      nullptr, ShmRing::kStrideBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, memory);
  constexpr uint32_t kDatagrams = 100'000;
  const ShmIncarnations incarnations{3, 5};
  std::thread producer([&] {
    ShmRing ring(memory);
    Random random(1);
    std::vector<std::byte> datagram(kShmDatagramBytesMax);
    for (uint32_t i = 0; i < kDatagrams; ++i) {
      const size_t bytes = 4 + random.below(kShmDatagramBytesMax - 3);
      std::memcpy(datagram.data(), &i, 4);
      while (!ring.push(incarnations, {datagram.data(), bytes})) std::this_thread::yield();
    }
  });
  ShmRing ring(memory);
  Random random(1);
  for (uint32_t i = 0; i < kDatagrams; ++i) {
    const size_t bytes = 4 + random.below(kShmDatagramBytesMax - 3);
    std::span<const std::byte> datagram;
    while ((datagram = ring.front(incarnations)).empty()) std::this_thread::yield();
    uint32_t number;
    std::memcpy(&number, datagram.data(), 4);
    ASSERT_EQ(i, number);
    ASSERT_EQ(bytes, datagram.size());
    ring.pop();
  }
  producer.join();
  munmap(memory, ShmRing::kStrideBytes);
}

TEST(ShmRing, CorruptRingLosesDatagramsAndNothingElse) {
  std::vector<uint64_t> memory(ShmRing::kStrideBytes / 8 + 8);
  auto* base = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) &
                                            ~uintptr_t{63});
  Random random(5);
  const ShmIncarnations incarnations{1, 1};
  for (int round = 0; round < 2000; ++round) {
    ShmRing ring(base);
    auto* words = reinterpret_cast<uint64_t*>(base);
    if (round % 2 == 0) {
      words[random.below(2) * 8] = random.next() >> random.below(64);  // head or tail
    }
    for (int i = 0; i < 200; ++i) words[512 + random.below(kShmRingBytes / 8)] = random.next();
    for (int i = 0; i < 20; ++i) {
      if (ring.front(incarnations).empty()) break;
      ring.pop();
    }
    (void)ring.front(incarnations);
    // A few looks from both sides put everything right.
    const std::byte byte{1};
    bool pushed = false;
    for (int i = 0; i < 4 && !pushed; ++i) {
      pushed = ring.push(incarnations, {&byte, 1});
      if (!pushed) ring.discard();
    }
    ASSERT_TRUE(pushed);
    while (ring.front(incarnations).size() > 1) ring.pop();
    EXPECT_EQ(1u, ring.front(incarnations).size());
    ring.pop();
  }
}

TEST(ShmOwner, SurvivesPacking) {
  const ShmOwner owner{ShmOwner::State::kLive, 0xBEEF, (1u << 22) - 1, ShmOwner::kIncarnationMax};
  const ShmOwner again = ShmOwner::unpack(owner.pack());
  EXPECT_EQ(owner.state, again.state);
  EXPECT_EQ(owner.start_time, again.start_time);
  EXPECT_EQ(owner.pid, again.pid);
  EXPECT_EQ(owner.incarnation, again.incarnation);
}

}  // namespace
}  // namespace rdmacc
