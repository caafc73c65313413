#include "engine/storage/wire/messages.h"

#include <gtest/gtest.h>

#include "engine/storage/wire/storage_messages.h"
#include "rdma/base/random.h"

namespace rdmacc {
namespace {

TEST(Messages, ReadBackWhatWasWritten) {
  std::vector<std::byte> bytes;
  MessageWriter writer(bytes);
  writer.u8(1);
  writer.u16(2);
  writer.u32(3);
  writer.u64(4);
  writer.bytes("five");
  writer.bytes("");
  EXPECT_EQ(writer.size(), 1u + 2 + 4 + 8 + 4 + 4 + 4);
  MessageReader reader(bytes);
  EXPECT_EQ(reader.u8(), 1u);
  EXPECT_EQ(reader.u16(), 2u);
  EXPECT_EQ(reader.u32(), 3u);
  EXPECT_EQ(reader.u64(), 4u);
  EXPECT_EQ(reader.bytes(), "five");
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_TRUE(reader.at_end());
}

TEST(Messages, GiveZeroAfterTheFirstReadPastTheEnd) {
  std::vector<std::byte> bytes;
  MessageWriter(bytes).u32(7);
  MessageReader reader(bytes);
  EXPECT_EQ(reader.u64(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0u);
  EXPECT_FALSE(reader.at_end());
}

TEST(Messages, RefuseALengthBeyondTheMessage) {
  std::vector<std::byte> bytes;
  MessageWriter(bytes).u32(0xFFFFFFFF);
  MessageReader reader(bytes);
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Messages, SurviveArbitraryBytes) {
  Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random.below(64));
    for (std::byte& each : bytes)
      each = static_cast<std::byte>(random.below(4) ? 0 : random.next());
    MessageReader reader(bytes);
    size_t read = 0;
    while (reader.ok() && read < 100) {
      switch (random.below(4)) {
        case 0:
          reader.u8();
          break;
        case 1:
          reader.u64();
          break;
        case 2:
          read += reader.bytes().size();
          break;
        default:
          read += reader.raw(random.below(20)).size();
      }
      ASSERT_LE(read, bytes.size());
      if (reader.at_end()) break;
    }
    AllocateRequest allocate;
    FreeMessage free;
    ExtendRequest extend;
    TableRequest table;
    NodeStatistics statistics;
    std::vector<AllocateReplyItem> items;
    static_cast<void>(allocate.parse(bytes));
    static_cast<void>(free.parse(bytes));
    static_cast<void>(extend.parse(bytes));
    static_cast<void>(table.parse(bytes));
    static_cast<void>(parse_statistics(bytes, &statistics));
    static_cast<void>(parse_allocate_reply(bytes, random.below(4), &items));
  }
}

TEST(Messages, RefuseMoreItemsThanAMessageHolds) {
  std::vector<std::byte> bytes;
  MessageWriter writer(bytes);
  writer.u64(1);
  writer.u32(kItemsPerMessage + 1);
  AllocateRequest request;
  EXPECT_FALSE(request.parse(bytes));
}

TEST(Messages, CarryRequestsOfTheStorageService) {
  AllocateRequest request{9, {{1, 2, 3, true}, {4, 5, 0, false}}};
  std::vector<std::byte> bytes;
  request.write(bytes);
  AllocateRequest read;
  ASSERT_TRUE(read.parse(bytes));
  EXPECT_EQ(read.ctts, 9u);
  ASSERT_EQ(read.items.size(), 2u);
  EXPECT_EQ(read.items[0].overflow_bytes, 3u);
  EXPECT_FALSE(read.items[1].want_slot);
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(read.parse(bytes));
}

TEST(Messages, CarryWhatWasAllocatedAndWhatIsFreed) {
  const std::vector<AllocateReplyItem> items = {{64, 7, 1ull << 40, 3, 128}, {0, 0, 0, 0, 192}};
  std::vector<std::byte> bytes;
  write_allocate_reply(items, bytes);
  std::vector<AllocateReplyItem> read;
  ASSERT_TRUE(parse_allocate_reply(bytes, items.size(), &read));
  ASSERT_EQ(read.size(), items.size());
  EXPECT_EQ(read[0].slot, 64u);
  EXPECT_EQ(read[0].incarnation, 7u);
  EXPECT_EQ(read[0].wts, 1ull << 40);
  EXPECT_EQ(read[0].lease, 3u);
  EXPECT_EQ(read[1].slot, 0u);
  EXPECT_EQ(read[1].block, 192u);
  EXPECT_FALSE(parse_allocate_reply(bytes, items.size() - 1, &read));
  bytes.pop_back();
  EXPECT_FALSE(parse_allocate_reply(bytes, items.size(), &read));

  FreeMessage freed{5, {{640, FreeKind::kTombstone}, {704, FreeKind::kReserved}}};
  bytes.clear();
  freed.write(bytes);
  FreeMessage heard;
  ASSERT_TRUE(heard.parse(bytes));
  EXPECT_EQ(heard.ctts, 5u);
  ASSERT_EQ(heard.items.size(), 2u);
  EXPECT_EQ(heard.items[0].offset, 640u);
  EXPECT_EQ(heard.items[0].kind, FreeKind::kTombstone);
  EXPECT_EQ(heard.items[1].kind, FreeKind::kReserved);
  freed.items[1].kind = static_cast<FreeKind>(4);
  bytes.clear();
  freed.write(bytes);
  EXPECT_FALSE(heard.parse(bytes));
}

}  // namespace
}  // namespace rdmacc
