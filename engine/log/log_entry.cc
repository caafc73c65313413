#include "engine/log/log_entry.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "engine/storage/layout/overflow.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

LogEntryHeader header_of(std::span<const std::byte> bytes) {
  CHECK(bytes.size() >= sizeof(LogEntryHeader));
  LogEntryHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

uint64_t checksum_of(LogEntryHeader header, std::span<const std::byte> stored,
                     const LogRingHead& owner) {
  header.checksum = XXH3_64bits(stored.data(), stored.size());
  header.magic = kLogEntryMagic;  // whatever its state
  return XXH3_64bits_withSeed(&header, sizeof(header), owner.salt ^ owner.incarnation);
}

// Lengths and kind agree, and the entry ends within the ring.
bool is_plausible(const LogEntryHeader& header, const LogRingHead& head, uint64_t place) {
  if (header.magic != kLogEntryMagic && header.magic != kLogPreparedMagic) return false;
  if (header.incarnation != head.incarnation) return false;
  if (header.position % kLogRingBytes != place || header.position < head.position) return false;
  if (log_entry_bytes(header.stored_bytes) > kLogRingBytes - place) return false;
  if (header.payload_bytes == 0 || header.payload_bytes > kLogPayloadMax) return false;
  switch (header.kind) {
    case LogPayload::kInline:
      return header.stored_bytes == header.payload_bytes;
    case LogPayload::kSegments:
      return header.stored_bytes == 8 + 8 * log_segments_of(header.payload_bytes);
  }
  return false;
}

std::optional<FoundEntry> entry_at_place(const LogRingHead& head, std::span<const std::byte> ring,
                                         uint64_t place) {
  const LogEntryHeader header = header_of(ring.subspan(place));
  if (!is_plausible(header, head, place)) return std::nullopt;
  const auto stored = ring.subspan(place + sizeof(header), header.stored_bytes);
  if (checksum_of(header, stored, head) != header.checksum) return std::nullopt;
  return FoundEntry{header, stored};
}

}  // namespace

uint64_t log_payload_checksum(std::span<const std::byte> payload) {
  return XXH3_64bits(payload.data(), payload.size());
}

void seal_log_entry(std::span<std::byte> entry, const LogRingHead& owner) {
  CHECK(entry.size() >= sizeof(LogEntryHeader) && entry.size() % 64 == 0);
  LogEntryHeader header = header_of(entry);
  CHECK(owner.incarnation != 0 && owner.position <= header.position);
  CHECK(log_entry_bytes(header.stored_bytes) == entry.size());
  header.magic = kLogEntryMagic;
  header.incarnation = static_cast<uint32_t>(owner.incarnation);
  header.checksum = checksum_of(header, entry.subspan(sizeof(header), header.stored_bytes), owner);
  std::memcpy(entry.data(), &header, sizeof(header));
}

std::vector<FoundEntry> find_log_entries(const LogRingHead& head, std::span<const std::byte> ring) {
  CHECK(ring.size() == kLogRingBytes);
  std::vector<FoundEntry> found;
  if (head.incarnation == 0) return found;
  for (uint64_t place = 0; place < kLogRingBytes; place += 64) {
    if (const std::optional<FoundEntry> entry = entry_at_place(head, ring, place)) {
      found.push_back(*entry);
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundEntry& a, const FoundEntry& b) {
    return a.header.position < b.header.position;
  });
  return found;
}

std::optional<FoundEntry> log_entry_at(const LogRingHead& head, std::span<const std::byte> ring,
                                       uint64_t position) {
  CHECK(ring.size() == kLogRingBytes);
  if (head.incarnation == 0 || position % 64 != 0) return std::nullopt;
  const std::optional<FoundEntry> entry = entry_at_place(head, ring, position % kLogRingBytes);
  return entry && entry->header.position == position ? entry : std::nullopt;
}

std::vector<GlobalAddress> segments_of(const FoundEntry& entry, NodeId node,
                                       const RegionLayout& layout) {
  CHECK(entry.header.kind == LogPayload::kSegments && entry.stored.size() >= 8);
  std::vector<GlobalAddress> segments(entry.stored.size() / 8 - 1);
  std::memcpy(segments.data(), entry.stored.data() + 8, segments.size() * 8);
  for (const GlobalAddress segment : segments) {
    const uint64_t end = segment.offset() + sizeof(OverflowHeader) + kLogSegmentBytes;
    if (segment.node() != node || segment.offset() % 8 != 0 || segment.offset() < layout.pages ||
        end > layout.region_bytes) {
      return {};
    }
  }
  return segments;
}

}  // namespace rdmacc
