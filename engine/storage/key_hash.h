#pragma once
#include <string_view>

#include "engine/storage/tuple.h"

// Where a key lives. One 64-bit hash of the table's id and the key's bytes decides everything:
//   bits 54..63  partition (1,024 of them)       bits 38..53  tag in the index entry
//   bits 35..37  home bucket within its group    bits  0..31  which group (extendible hashing)

namespace rdmacc {

constexpr uint32_t kPartitions = 1024;
using PartitionId = uint16_t;

// Tables whose ids have this bit are placed: their keys begin with the length of a place (two
// bytes, the lower one first) and the place, which alone decides the partition. Equal places are in
// one partition whatever the table, so that rows that are used together are on one node. Other
// keys, and malformed ones, are their own place.
constexpr TableId kPlacedTable = 1u << 31;
constexpr size_t kPlaceLengthBytes = 2;
// In the order in which tables were made, placed or not.
constexpr TableId number_of_table(TableId table) { return table & ~kPlacedTable; }

// The same for equal bytes in every process; keys of different tables hash independently, but for
// the partition of placed ones.
uint64_t hash_key(TableId table, std::string_view key);

constexpr PartitionId partition_of(uint64_t hash) { return static_cast<PartitionId>(hash >> 54); }
constexpr uint16_t tag_of(uint64_t hash) { return static_cast<uint16_t>(hash >> 38); }
constexpr uint32_t home_bucket_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 35) & 7; }
constexpr uint64_t group_bits_of(uint64_t hash, uint32_t depth) {
  return hash & ((1ull << depth) - 1);
}

}  // namespace rdmacc
