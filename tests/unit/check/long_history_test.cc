// Histories of a million operations: the work grows with them, not with their square. Work is
// counted, not timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/base/random.h"
#include "tests/unit/check/made_history.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;

constexpr uint64_t kKeys = 10'000;

std::string key_of(uint64_t k) { return "k" + std::to_string(k); }

HistoryTransaction load_of(uint64_t keys) {
  HistoryTransaction load = txn(0, {});
  for (uint64_t k = 0; k < keys; ++k) load.events.push_back(op('i', key_of(k), 1));
  return load;
}

// A serial execution of transactions that read four keys and write two of them.
std::vector<HistoryTransaction> serial_history(uint64_t operations) {
  Random random(7);
  std::vector<HistoryTransaction> history{load_of(kKeys)};
  std::vector<uint64_t> version(kKeys, 1);
  uint64_t made = kKeys;
  for (uint64_t t = 2; made < operations; ++t) {
    history.push_back(timed(3 * t, 3 * t + 4, {}));
    std::vector<HistoryEvent>& events = history.back().events;
    for (uint64_t i = 0; i < 4; ++i) {
      const uint64_t k = random.below(kKeys / 4) * 4 + i;
      events.push_back(op('r', key_of(k), version[k]));
      if (i % 2 == 1) continue;
      events.push_back(op('w', key_of(k), t));
      version[k] = t;
    }
    made += events.size();
  }
  return history;
}

TEST(LongHistory, AMillionOperationsNeedTwoMillionEdgesAtMost) {
  std::vector<HistoryTransaction> history = serial_history(1'000'000);
  const CheckReport clean = check(history);
  EXPECT_TRUE(clean.strictly_serializable) << clean.problem << clean.real_time_problem;
  EXPECT_GE(clean.operations, 1'000'000u);
  // A read has a writer and a next writer, a version one before it.
  EXPECT_LE(clean.edges, 2 * clean.operations);
  EXPECT_GT(clean.edges, clean.operations / 2);

  // One read of an old version, without a write: legal, but as of long ago.
  history.push_back(timed(5'000'000, 5'000'001, {op('r', "k4", 1)}));
  EXPECT_EQ(check(history).real_time_violations, 1u);
  // One lost update makes one component of all that came after it.
  history.back().events.push_back(op('w', "k4", 1'000'000));
  EXPECT_THAT(check(history).problem, HasSubstr("lost update, cycle of 2"));
}

TEST(LongHistory, ALongCycleIsFound) {
  // Each transaction reads what the one before wrote, the first what the last wrote.
  constexpr uint64_t kLength = 20'000;
  std::vector<HistoryTransaction> history{load_of(kLength)};
  for (uint64_t t = 0; t < kLength; ++t) {
    history.push_back(
        txn(1, {op('w', key_of(t), 2), op('r', key_of((t + kLength - 1) % kLength), 2)}));
  }
  EXPECT_THAT(check(history).problem, HasSubstr("(G1c), cycle of 20000: "));
}

// A key that a scan misses costs two edges at most; those that one transaction has loaded or
// removed together cost one.
TEST(LongHistory, AScanCostsTheKeysThatItMisses) {
  constexpr uint64_t kScans = 200;
  HistoryTransaction unload = txn(0, {});
  for (uint64_t k = 0; k < kKeys; ++k) unload.events.push_back(op('d', key_of(k), 2));
  std::vector<HistoryTransaction> history{load_of(kKeys), std::move(unload)};
  for (uint64_t k = 0; k < kKeys; ++k) history.push_back(txn(1, {op('i', key_of(k), 9)}));
  const uint64_t chains = check(history).edges;
  EXPECT_EQ(chains, 2 * kKeys);
  for (uint64_t s = 0; s < kScans; ++s) history.push_back(txn(1, {scan(3)}));
  const CheckReport report = check(history);
  EXPECT_TRUE(report.serializable) << report.problem;
  EXPECT_EQ(report.edges, chains + kScans * (1 + kKeys));
}

TEST(LongHistory, AScanOfAGroupCostsTheKeysOfThatGroup) {
  constexpr uint64_t kScans = 5000;
  constexpr uint32_t kDepth = 6;
  std::vector<HistoryTransaction> history;
  for (uint64_t k = 0; k < kKeys; ++k) history.push_back(txn(1, {op('i', key_of(k), 1)}));
  uint64_t misses = 0;
  for (uint64_t s = 0; s < kScans; ++s) {
    HistoryEvent one_group = scan(0);  // as of before the load
    const uint64_t bits = s % (1u << kDepth);
    one_group.groups = {{0, bits, kDepth, 0}, {1, bits, kDepth, 0}};
    history.push_back(txn(1, {one_group}));
  }
  for (uint64_t k = 0; k < kKeys; ++k) {
    const uint64_t bits = group_bits_of(hash_key(kTable, key_of(k)), kDepth);
    misses += kScans / (1u << kDepth) + (bits < kScans % (1u << kDepth) ? 1 : 0);
  }
  const CheckReport report = check(history);
  EXPECT_TRUE(report.serializable) << report.problem;
  EXPECT_EQ(report.edges, misses);  // each comes before the insert
}

}  // namespace
}  // namespace rdmacc
