#pragma once
#include <string_view>

#include "engine/storage/tuple.h"

// Where a key lives. One 64-bit hash of the table's id and the key's bytes decides everything:
//   bits 54..63  partition (1,024 of them)       bits 38..53  tag in the index entry
//   bits 35..37  home bucket within its group    bits  0..31  which group (extendible hashing)

namespace rdmacc {

constexpr uint32_t kPartitions = 1024;
using PartitionId = uint16_t;

// The same for equal bytes in every process; keys of different tables hash independently.
uint64_t hash_key(TableId table, std::string_view key);

constexpr PartitionId partition_of(uint64_t hash) { return static_cast<PartitionId>(hash >> 54); }
constexpr uint16_t tag_of(uint64_t hash) { return static_cast<uint16_t>(hash >> 38); }
constexpr uint32_t home_bucket_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 35) & 7; }
constexpr uint64_t group_bits_of(uint64_t hash, uint32_t depth) {
  return hash & ((1ull << depth) - 1);
}

}  // namespace rdmacc
