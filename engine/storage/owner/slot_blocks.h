#pragma once
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/owner/owned_region.h"

namespace rdmacc {

// Calls back with the offset of every overflow block that a block of old versions refers to, and of
// that block itself.
template <typename Visit>
void for_each_block_of_versions(const OwnedRegion& region, uint64_t versions, uint32_t record_size,
                                uint32_t history, Visit visit) {
  if (!may_be_versions(versions, record_size, history, region.bytes())) return;
  for (uint32_t i = 0; i < history; ++i) {
    const uint64_t version = versions + version_place(record_size, i);
    const uint64_t stamp = region.load(version);
    if (stamp == kNoVersionStamp || stamp == kLostVersionStamp) continue;  // never filled
    const auto flags = static_cast<uint32_t>(region.load(version + 8) >> 32);
    if ((flags & kFlagOverflow) != 0) visit(region.load(version + 16) & kLowOffsetMask);
  }
  visit(versions);
}

// Calls back with the offset of every overflow block that a slot refers to: of its newest record
// first, then of its old versions, then the block that holds these. In this order a block that is
// just becoming an old version is never missed, since a writer copies it before it overwrites the
// record.
template <typename Visit>
void for_each_block_of(const OwnedRegion& region, uint64_t slot, uint32_t record_size,
                       uint32_t history, Visit visit) {
  const auto flags = static_cast<uint32_t>(region.load(slot + kOffsetOfLength) >> 32);
  if ((flags & kFlagOverflow) != 0) visit(region.load(slot + kOffsetOfRecord) & kLowOffsetMask);
  if (history == 0) return;
  const uint64_t versions = region.load(slot + versions_reference_place(record_size));
  for_each_block_of_versions(region, versions, record_size, history, visit);
}

}  // namespace rdmacc
