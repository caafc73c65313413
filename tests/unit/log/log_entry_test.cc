#include "engine/log/log_entry.h"

#include <gtest/gtest.h>

#include "tests/unit/log/log_cluster.h"

namespace rdmacc {
namespace {

const LogRingHead kOwner{0, 3, 0x5A17, {}};

Payload make_entry(uint64_t position, const Payload& payload, const LogRingHead& owner) {
  Payload entry(log_entry_bytes(payload.size()));
  LogEntryHeader header{};
  header.position = position;
  header.lock_ctts = 77;
  header.payload_bytes = header.stored_bytes = static_cast<uint32_t>(payload.size());
  header.kind = LogPayload::kInline;
  std::memcpy(entry.data(), &header, sizeof(header));
  std::memcpy(entry.data() + sizeof(header), payload.data(), payload.size());
  seal_log_entry(entry, owner);
  return entry;
}

void put(Payload& ring, uint64_t position, const Payload& entry) {
  std::memcpy(ring.data() + position % kLogRingBytes, entry.data(), entry.size());
}

TEST(LogEntry, IsFoundWithItsBytes) {
  Payload ring(kLogRingBytes);
  const Payload payload = make_payload(100, 1);
  put(ring, 640, make_entry(640, payload, kOwner));
  const auto found = find_log_entries(kOwner, ring);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), found[0].stored.begin()));
  EXPECT_EQ(found[0].header.lock_ctts, 77u);
}

TEST(LogEntry, OfAnotherOwnerOrPlaceDoesNotCount) {
  const Payload payload = make_payload(100, 1);
  Payload ring(kLogRingBytes);
  LogRingHead other = kOwner;
  other.incarnation = 2;
  put(ring, 0, make_entry(0, payload, other));
  other = kOwner;
  other.salt = 1;
  put(ring, 256, make_entry(256, payload, other));
  put(ring, 512, make_entry(512 + 64, payload, kOwner));               // not its place
  put(ring, 1024, make_entry(1024 + kLogRingBytes, payload, kOwner));  // counts: a later lap
  EXPECT_EQ(find_log_entries(kOwner, ring).size(), 1u);
  LogRingHead later = kOwner;
  later.position = 4096 + kLogRingBytes;  // of which the head says that it no longer matters
  EXPECT_TRUE(find_log_entries(later, ring).empty());
  EXPECT_TRUE(find_log_entries(LogRingHead{}, ring).empty());
}

TEST(LogEntry, AnEntryThatNeverArrivedHidesNoLaterOne) {
  Payload ring(kLogRingBytes);
  put(ring, 0, make_entry(0, make_payload(100, 1), kOwner));
  put(ring, 4096, make_entry(4096, make_payload(100, 2), kOwner));
  EXPECT_EQ(find_log_entries(kOwner, ring).size(), 2u);
}

// Row bytes are the users': they must not be able to make a log entry.
TEST(LogEntry, ForgedInsideAPayloadDoesNotCount) {
  Payload payload = make_payload(4096, 1);
  LogRingHead guess = kOwner;
  guess.salt = 0;
  const Payload forged = make_entry(1024, make_payload(64, 9), guess);
  std::memcpy(payload.data() + 1024 - sizeof(LogEntryHeader), forged.data(), forged.size());
  Payload ring(kLogRingBytes);
  put(ring, 0, make_entry(0, payload, kOwner));
  EXPECT_EQ(find_log_entries(kOwner, ring).size(), 1u);
}

TEST(LogEntry, NeverCountsWhenAnyByteIsWrong) {
  Random random(5);
  const Payload payload = make_payload(200, 1);
  const Payload entry = make_entry(128, payload, kOwner);
  const size_t meaningful = sizeof(LogEntryHeader) + payload.size();
  Payload ring(kLogRingBytes);
  for (int i = 0; i < 20'000; ++i) {
    put(ring, 128, entry);
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      ring[128 + random.below(meaningful)] ^= static_cast<std::byte>(1 + random.below(255));
    }
    const auto found = find_log_entries(kOwner, ring);
    // Two flips may undo each other.
    if (found.empty()) continue;
    ASSERT_EQ(std::memcmp(ring.data() + 128, entry.data(), meaningful), 0);
  }
}

// A peer may write random bytes to all it may write: nothing is read out of bounds.
TEST(LogEntry, SurvivesRandomRings) {
  Random random(6);
  for (int i = 0; i < 300; ++i) {
    Payload ring = make_payload(kLogRingBytes, random.next());
    for (int n = 0; n < 200; ++n) {
      const uint64_t place = 64 * random.below(kLogRingBytes / 64);
      LogEntryHeader header;
      std::memcpy(&header, ring.data() + place, sizeof(header));
      header.magic = kLogEntryMagic;
      header.position = place + kLogRingBytes * random.below(3);
      header.incarnation = 3;
      header.kind = static_cast<LogPayload>(1 + random.below(2));
      header.payload_bytes = static_cast<uint32_t>(random.next() >> random.below(64));
      header.stored_bytes =
          header.kind == LogPayload::kInline
              ? header.payload_bytes
              : static_cast<uint32_t>(8 + 8 * log_segments_of(header.payload_bytes));
      std::memcpy(ring.data() + place, &header, sizeof(header));
    }
    EXPECT_TRUE(find_log_entries(kOwner, ring).empty());
  }
}

TEST(LogEntry, SegmentsOutsideThePagesAreRefused) {
  Topology topology;
  topology.nodes = 2;
  topology.workers_max = 8;
  topology.region_bytes = 64ull << 20;
  const RegionLayout layout(topology);
  const auto list_of = [](std::vector<uint64_t> words) {
    Payload bytes(words.size() * 8);
    std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
  };
  LogEntryHeader header{};
  header.kind = LogPayload::kSegments;
  const auto segments = [&](GlobalAddress address) {
    const Payload list = list_of({0, address.bits});
    return segments_of(FoundEntry{header, list}, 1, layout).size();
  };
  EXPECT_EQ(segments(GlobalAddress::make(1, layout.pages)), 1u);
  EXPECT_EQ(segments(GlobalAddress::make(0, layout.pages)), 0u);
  EXPECT_EQ(segments(GlobalAddress::make(1, layout.pages + 4)), 0u);
  EXPECT_EQ(segments(GlobalAddress::make(1, layout.pages - 64)), 0u);
  EXPECT_EQ(segments(GlobalAddress::make(1, layout.region_bytes - 4096)), 0u);
  EXPECT_EQ(segments(GlobalAddress::make(1, (1ull << 48) - 8)), 0u);
}

}  // namespace
}  // namespace rdmacc
