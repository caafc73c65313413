#pragma once
#include <string_view>

#include "engine/storage/layout/tuple.h"

// Where a key lives. One 64-bit hash of the table's id and the key's bytes decides everything:
//   bits 54..63  partition (1,024 of them)       bits 38..53  tag in the index entry
//   bits 35..37  home bucket within its group    bits  0..31  which group (extendible hashing)

namespace rdmacc {

constexpr uint32_t kPartitions = 1024;
using PartitionId = uint16_t;

// Tables whose ids have this bit have a distribution key, with which their keys begin (TableSpec of
// engine/api/plain_data.h) and which alone decides the partition: equal ones are in one partition
// whatever the table, so that rows that are used together are on one node. Other keys, and
// malformed ones, are their own distribution key.
constexpr TableId kDistributedTable = 1u << 31;
// In the order in which tables were made, of either kind.
constexpr TableId number_of_table(TableId table) { return table & ~kDistributedTable; }

// The same for equal bytes in every process; keys of different tables hash independently, but for
// the partition where that is a distribution key's.
uint64_t hash_key(TableId table, std::string_view key);

constexpr PartitionId partition_of(uint64_t hash) { return static_cast<PartitionId>(hash >> 54); }
constexpr uint16_t tag_of(uint64_t hash) { return static_cast<uint16_t>(hash >> 38); }
constexpr uint32_t home_bucket_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 35) & 7; }
constexpr uint64_t group_bits_of(uint64_t hash, uint32_t depth) {
  return hash & ((1ull << depth) - 1);
}

}  // namespace rdmacc
