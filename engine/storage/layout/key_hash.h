#pragma once
#include <bit>
#include <cstring>
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

// The odd multiplier spreads neighbouring table ids over the whole seed.
constexpr uint64_t hash_seed_of(TableId table) { return (table + 1ull) * 0x9E3779B97F4A7C15ull; }

// Hashes keys of one table: the same for equal bytes in every process; keys of different tables
// hash independently, but for the partition where that is a distribution key's. XXH3: of 8 bytes it
// is spelled out, since keys are looked up by the dozen, and a call of the library's takes longer
// than the hash.
class KeyHash {
 public:
  explicit constexpr KeyHash(TableId table) : table_(table), flip_(flip_of(hash_seed_of(table))) {}

  uint64_t operator()(std::string_view key) const {
    if (key.size() != sizeof(uint64_t) || (table_ & kDistributedTable) != 0) return of_any(key);
    uint64_t word = 0;
    std::memcpy(&word, key.data(), sizeof(word));
    return of_word(word);
  }

 private:
  static constexpr uint64_t flip_of(uint64_t seed) {
    constexpr uint64_t kSecret = 0x1CAD21F72C81017Cull ^ 0xDB979083E96DD4DEull;
    const uint64_t swapped = __builtin_bswap32(static_cast<uint32_t>(seed));
    return kSecret - (seed ^ swapped << 32);
  }
  constexpr uint64_t of_word(uint64_t word) const {
    constexpr uint64_t kPrime = 0x9FB21C651E98DF25ull;
    uint64_t hash = std::rotl(word, 32) ^ flip_;
    hash ^= std::rotl(hash, 49) ^ std::rotl(hash, 24);
    hash *= kPrime;
    hash ^= (hash >> 35) + sizeof(word);
    hash *= kPrime;
    return hash ^ (hash >> 28);
  }
  uint64_t of_any(std::string_view key) const;

  TableId table_;
  uint64_t flip_;
};

inline uint64_t hash_key(TableId table, std::string_view key) { return KeyHash(table)(key); }

constexpr PartitionId partition_of(uint64_t hash) { return static_cast<PartitionId>(hash >> 54); }
constexpr uint16_t tag_of(uint64_t hash) { return static_cast<uint16_t>(hash >> 38); }
constexpr uint32_t home_bucket_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 35) & 7; }
constexpr uint64_t group_bits_of(uint64_t hash, uint32_t depth) {
  return hash & ((1ull << depth) - 1);
}

}  // namespace rdmacc
