#include <algorithm>
#include <cstring>

#include "engine/log/resolve.h"
#include "engine/storage/layout/overflow.h"

namespace rdmacc {
namespace {

constexpr uint64_t kReadBytes = 64 * 1024;
constexpr uint64_t kSegmentsPerRound = 4;
static_assert(kLogRingBytes % kReadBytes == 0);

// Blocks of an entry that was applied long ago may have been allocated again since: then
// the checksum is wrong and the entry no longer counts. *complete says so.
Status read_segments(Worker& by, const FoundEntry& entry, std::span<const GlobalAddress> segments,
                     std::vector<std::byte>& payload, bool* complete, VerbCounters& counters) {
  VerbArena arena(by.pool());
  std::byte* staging = arena.allocate(kSegmentsPerRound * kLogSegmentBytes);
  if (staging == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(by.scheduler(), counters);
  payload.resize(entry.header.payload_bytes);
  for (size_t first = 0; first < segments.size(); first += kSegmentsPerRound) {
    const size_t count = std::min<size_t>(kSegmentsPerRound, segments.size() - first);
    const uint64_t start = first * kLogSegmentBytes;
    const uint64_t bytes = std::min(count * kLogSegmentBytes, payload.size() - start);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t part = std::min(kLogSegmentBytes, bytes - i * kLogSegmentBytes);
      batch.read(segments[first + i].plus(sizeof(OverflowHeader)), staging + i * kLogSegmentBytes,
                 round_up(part, 8));
    }
    RDMACC_RETURN_IF_ERROR(batch.execute());
    std::memcpy(payload.data() + start, staging, bytes);
  }
  uint64_t checksum;
  std::memcpy(&checksum, entry.stored.data(), 8);
  *complete = log_payload_checksum(payload) == checksum;
  return Status::ok_status();
}

GlobalAddress ring_entry_address(GlobalAddress ring, const FoundEntry& entry) {
  return GlobalAddress::make(ring.node(), log_entry_offset(ring.offset(), entry.header.position));
}

}  // namespace

Status read_ring(Worker& by, const RegionLayout& layout, NodeId node, WorkerId dead,
                 std::vector<RingEntry>& entries, VerbCounters& counters) {
  const GlobalAddress ring = GlobalAddress::make(node, layout.log_ring(dead));
  VerbArena arena(by.pool());
  auto* head = arena.allocate_array<LogRingHead>(1);
  std::byte* image = arena.allocate(kLogRingBytes);
  if (head == nullptr || image == nullptr) {
    return out_of_registered_memory();
  }
  DoorbellBatch batch(by.scheduler(), counters);
  batch.read(ring, head, sizeof(LogRingHead));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  // Then there may be no memory behind the rest.
  if (head->incarnation == 0) return Status::ok_status();
  for (uint64_t at = 0; at < kLogRingBytes; at += kReadBytes) {
    batch.read(ring.plus(sizeof(LogRingHead) + at), image + at, kReadBytes);
  }
  RDMACC_RETURN_IF_ERROR(batch.execute());

  for (const FoundEntry& entry : find_log_entries(*head, {image, kLogRingBytes})) {
    RingEntry found{{}, entry.prepared(), ring_entry_address(ring, entry)};
    if (entry.header.kind == LogPayload::kInline) {
      found.payload.assign(entry.stored.begin(), entry.stored.end());
      entries.push_back(std::move(found));
      continue;
    }
    const std::vector<GlobalAddress> segments = segments_of(entry, node, layout);
    if (segments.empty()) continue;
    bool complete = false;
    RDMACC_RETURN_IF_ERROR(read_segments(by, entry, segments, found.payload, &complete, counters));
    if (complete) entries.push_back(std::move(found));
  }
  return Status::ok_status();
}

}  // namespace rdmacc
