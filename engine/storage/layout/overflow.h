#pragma once
#include <bit>

#include "engine/storage/layout/region_layout.h"
#include "engine/storage/layout/tuple.h"
#include "rdma/base/check.h"

namespace rdmacc {

// A record that does not fit its slot: an immutable block on the same node, new for each write,
// whose address (offset of this header, plus 48-bit node-less) is the record's first 8 bytes.
// The record's length is in the tuple's header; its bytes start behind this header.
struct OverflowHeader {
  // Of the transaction that allocated it; 0 = free; kept_tag() where a worker has it in advance.
  uint64_t owner_ctts;
  uint64_t capacity;  // bytes behind this header
};
static_assert(sizeof(OverflowHeader) == 16);

static_assert(sizeof(OverflowHeader) == kVersionsSlotPlace);

constexpr uint64_t kOverflowBytesMax = record_bytes(kKeyBytesMax, kRowBytesMax) + 8;

// Unit that holds an overflow block of `bytes` behind its header: four classes per doubling, and
// whole pages beyond a page.
inline uint32_t overflow_unit_bytes(uint64_t bytes) {
  CHECK(bytes <= kOverflowBytesMax);
  const uint64_t total = sizeof(OverflowHeader) + bytes;
  if (total > kPageBytes) return static_cast<uint32_t>(round_up(total, kPageBytes));
  if (total <= 256) return static_cast<uint32_t>(round_up(total, 64));
  return static_cast<uint32_t>(round_up(total, std::bit_floor(total - 1) / 4));
}

// The owner word of what a worker keeps in advance: no transaction has such a ctts.
constexpr uint64_t kKeptBit = 1ull << 63;
constexpr uint64_t kept_tag(uint64_t now_us, WorkerId worker) {
  return kKeptBit | now_us << 16 | worker;
}
// The longest that workers keep in advance, and how many they ask for at a time.
constexpr uint64_t kKeptBlockBytesMax = 16 * 1024 - sizeof(OverflowHeader);
constexpr uint32_t kReservedBlocksMax = 1024;
static_assert(kVersionsBytesMax <= kKeptBlockBytesMax);

}  // namespace rdmacc
