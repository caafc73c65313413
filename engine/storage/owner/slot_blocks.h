#pragma once
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/owner/owned_region.h"

namespace rdmacc {

// Calls back with the offset of every overflow block that a slot refers to: of its newest record
// first, then of its old versions. In this order a block that is just becoming an old version is
// never missed, since a writer copies it before it overwrites the record.
template <typename Visit>
void for_each_block_of(const OwnedRegion& region, uint64_t slot, uint32_t record_size,
                       uint32_t history, Visit visit) {
  const auto overflows = [&](uint64_t length_word) {
    return (static_cast<uint32_t>(region.load(length_word) >> 32) & kFlagOverflow) != 0;
  };
  const auto block_at = [&](uint64_t record) { return region.load(record) & kLowOffsetMask; };

  if (overflows(slot + kOffsetOfLength)) visit(block_at(slot + kOffsetOfRecord));
  for (uint32_t i = 0; i < history; ++i) {
    const uint64_t version = slot + version_place(record_size, i);
    if (region.load(version) == kNoVersionStamp) continue;  // never filled
    if (overflows(version + 8)) visit(block_at(version + 16));
  }
}

}  // namespace rdmacc
