#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/storage/layout/region_layout.h"
#include "rdma/fabric/verb.h"

// The bytes of a log ring.
//
//   head line, 64 B:  position of the oldest entry that may still matter, incarnation and salt of
//                     the owner
//   entry:            LogEntryHeader 48 B, stored bytes, padded to 64; it starts at a multiple of
//                     64 and never wraps: one that does not fit behind the last starts a new lap
//   stored bytes:     the payload, or kSegments: xxh3 of the payload, then the 8-byte addresses
//                     of its segments, kLogSegmentBytes of payload in each but the last
//
// An entry counts iff it stands where its own position says (so that an earlier lap's bytes never
// pass) and its checksum, over header, stored bytes, and the ring owner's incarnation and salt, is
// right; anything else is no entry. Entries are placed in order but written in any order and each
// is found by itself, so that one that never arrived hides no other. The salt, a random number of
// the owner, keeps row bytes that look like an entry from passing as one.
//
// The first word of an entry is its state, which the checksum does not cover, so that one WRITE of
// 8 bytes changes it: prepared (complete, but decided outside the engine), committed, or anything
// else, which makes it void.

namespace rdmacc {

enum class LogPayload : uint32_t { kInline = 1, kSegments = 2 };

struct LogEntryHeader {
  uint64_t magic;          // kLogEntryMagic: committed; kLogPreparedMagic: prepared
  uint64_t position;       // bytes since the ring's beginning; place = position mod kLogRingBytes
  uint64_t checksum;       // of this header, with that of the stored bytes in its place
  uint64_t lock_ctts;      // of the transaction
  uint32_t payload_bytes;  // whole payload
  LogPayload kind;
  uint32_t incarnation;   // of the coordinator's worker slot
  uint32_t stored_bytes;  // bytes behind this header
};
static_assert(sizeof(LogEntryHeader) == 48);

struct LogRingHead {
  uint64_t position = 0;
  uint64_t incarnation = 0;  // 0: the ring is empty and not owned
  uint64_t salt = 0;
  uint64_t reserved[5] = {};
};
static_assert(sizeof(LogRingHead) == 64);

constexpr uint64_t kLogEntryMagic = 0x4C'6F'67'45'6E'74'72'79ull;
constexpr uint64_t kLogPreparedMagic = 0x50'72'65'70'61'72'65'64ull;
constexpr uint64_t kInlinePayloadMax = kLogRingBytes / 2 - 4096;
constexpr uint64_t kLogSegmentBytes = 60 * 1024;
constexpr uint64_t kLogSegmentsMax = (kInlinePayloadMax - 8) / 8;
constexpr uint64_t kLogPayloadMax = 512ull << 20;
static_assert(kLogPayloadMax / kLogSegmentBytes < kLogSegmentsMax);
static_assert(kLogRingBytes % 64 == 0);

constexpr uint64_t log_entry_bytes(uint64_t stored_bytes) {
  return (sizeof(LogEntryHeader) + stored_bytes + 63) / 64 * 64;
}
constexpr uint64_t log_segments_of(uint64_t payload_bytes) {
  return (payload_bytes + kLogSegmentBytes - 1) / kLogSegmentBytes;
}
// Of the entry at `position` in the ring that starts (with its head line) at `ring`.
constexpr uint64_t log_entry_offset(uint64_t ring, uint64_t position) {
  return ring + sizeof(LogRingHead) + position % kLogRingBytes;
}

uint64_t log_payload_checksum(std::span<const std::byte> payload);

// Completes an entry's header in place: magic (committed), incarnation, checksum. `entry` is
// header, stored bytes and padding.
void seal_log_entry(std::span<std::byte> entry, const LogRingHead& owner);

// A valid entry found in a ring's image; `stored` points into the image.
struct FoundEntry {
  LogEntryHeader header;
  std::span<const std::byte> stored;
  bool prepared() const { return header.magic == kLogPreparedMagic; }
};
// The valid entries of a ring's image (without its head line), by position; a torn or foreign
// image gives fewer, never wrong ones.
std::vector<FoundEntry> find_log_entries(const LogRingHead& head, std::span<const std::byte> ring);
// The one at that position, if it is valid.
std::optional<FoundEntry> log_entry_at(const LogRingHead& head, std::span<const std::byte> ring,
                                       uint64_t position);
// The segments that a kSegments entry on `node` lists; empty if it makes no sense.
std::vector<GlobalAddress> segments_of(const FoundEntry& entry, NodeId node,
                                       const RegionLayout& layout);

}  // namespace rdmacc
