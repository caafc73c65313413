// Stage plans as text and numbers, and stage messages as bytes that are not trusted.
#include "engine/txn/rule/stage.h"

#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "engine/txn/remote/stage_message.h"
#include "rdma/base/random.h"

namespace rdmacc {
namespace {

TEST(StagePlanParse, KnowsNamesNumbersAndLists) {
  EXPECT_EQ(StagePlan::parse("one_sided")->code(), 511);
  EXPECT_EQ(StagePlan::parse("RPC")->code(), 0);
  EXPECT_EQ(StagePlan::parse(" 37 ")->code(), 37);
  EXPECT_EQ(StagePlan::parse("lock=rpc, log = one_sided")->code(), 510);
  EXPECT_EQ(StagePlan::parse("lock=rpc,commit=rpc")->of(Stage::kCommit), Primitive::kRpc);
  EXPECT_EQ(StagePlan::parse("lock=rpc")->of(Stage::kRead), Primitive::kOneSided);
}

TEST(StagePlanParse, RefusesWithASentence) {
  for (const char* bad : {"", "512", "-1", "99999999999", "both", "lock", "lock=maybe", "locks=rpc",
                          "lock=rpc,,", "29x"}) {
    const auto plan = StagePlan::parse(bad);
    EXPECT_FALSE(plan.ok()) << bad;
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument) << bad;
    EXPECT_NE(plan.status().message().find("hybrid code 0 .. 511"), std::string::npos) << bad;
  }
}

TEST(StagePlanText, IsCanonicalPerProtocol) {
  const uint16_t stages = stages_of(Protocol::kNowait);
  EXPECT_EQ(StagePlan(511).canonical(stages).code(), 29);
  EXPECT_EQ(StagePlan(511).to_string(stages), "one_sided");
  EXPECT_EQ(StagePlan(34).to_string(stages), "rpc");
  EXPECT_EQ(StagePlan(28).to_string(stages),
            "lock=rpc,log=one_sided,release=one_sided,commit=one_sided");
}

std::vector<std::byte> key_request(std::string_view key) {
  std::vector<std::byte> bytes;
  MessageWriter out(bytes);
  KeyWork work;
  work.table = 5;
  work.hash = 17;
  work.key = key;
  write_key_request(out, work);
  return bytes;
}

TEST(StageMessage, KeyRequestComesBack) {
  const auto bytes = key_request("a key");
  MessageReader in(bytes);
  KeyWork work;
  ASSERT_TRUE(read_key_request(in, work));
  EXPECT_EQ(work.table, 5u);
  EXPECT_EQ(work.hash, 17u);
  EXPECT_EQ(work.key, "a key");
  EXPECT_TRUE(in.at_end());
}

TEST(StageMessage, EveryPrefixOfARequestIsRefused) {
  const auto bytes = key_request("a key");
  for (size_t n = 0; n < bytes.size(); n++) {
    MessageReader in{std::span<const std::byte>(bytes).first(n)};
    KeyWork work;
    EXPECT_FALSE(read_key_request(in, work)) << n;
  }
}

TEST(StageMessage, RandomBytesNeverCrashAParser) {
  Random random(5);
  for (int round = 0; round < 20'000; round++) {
    std::vector<std::byte> bytes(random.below(120));
    for (auto& b : bytes) b = static_cast<std::byte>(random.next());
    MessageReader header_in(bytes);
    StageHeader header;
    static_cast<void>(read_header(header_in, header));
    MessageReader key_in(bytes);
    KeyWork key;
    static_cast<void>(read_key_request(key_in, key));
    MessageReader lock_in(bytes);
    Access access;
    LockWork lock;
    EntryWork entries;
    static_cast<void>(read_lock_request(lock_in, access, entries, lock));
    MessageReader group_in(bytes);
    ScanWork group;
    static_cast<void>(read_group_request(group_in, group));
    MessageReader status_in(bytes);
    static_cast<void>(read_status(status_in));
  }
}

TEST(SplitRecord, ChecksTheKeyLength) {
  std::string_view key, row;
  EXPECT_TRUE(split_record(std::string_view("\x02\0abrow", 7), key, row));
  EXPECT_EQ(key, "ab");
  EXPECT_EQ(row, "row");
  EXPECT_FALSE(split_record(std::string_view("\x09\0abrow", 7), key, row));
  EXPECT_FALSE(split_record(std::string_view("\x02", 1), key, row));
  EXPECT_FALSE(split_record({}, key, row));
}

}  // namespace
}  // namespace rdmacc
