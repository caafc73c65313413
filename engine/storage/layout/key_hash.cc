#include "engine/storage/layout/key_hash.h"

// Most keys are short: their hash is a few instructions.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rdmacc {
namespace {

constexpr uint64_t kPartitionBits = ~0ull << 54;

// The odd multiplier spreads neighbouring table ids over the whole seed.
uint64_t hash_of(TableId table, std::string_view bytes) {
  const uint64_t seed = (table + 1ull) * 0x9E3779B97F4A7C15ull;
  // Of a length that it knows the compiler makes a third of the code.
  if (bytes.size() == sizeof(uint64_t)) {
    return XXH3_64bits_withSeed(bytes.data(), sizeof(uint64_t), seed);
  }
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string_view distribution_key_of(std::string_view key) {
  if (key.size() < kDistributionLengthBytes) return key;
  const auto low = static_cast<uint8_t>(key[0]), high = static_cast<uint8_t>(key[1]);
  const size_t size = low | static_cast<size_t>(high) << 8;
  const std::string_view rest = key.substr(kDistributionLengthBytes);
  return size <= rest.size() ? rest.substr(0, size) : key;
}

// Out of line, so that other keys need no registers saved.
[[gnu::noinline]] uint64_t in_partition_of_its_own(uint64_t hash, std::string_view key) {
  return (hash & ~kPartitionBits) |
         (hash_of(kDistributedTable, distribution_key_of(key)) & kPartitionBits);
}

}  // namespace

uint64_t hash_key(TableId table, std::string_view key) {
  const uint64_t hash = hash_of(table, key);
  if ((table & kDistributedTable) == 0) [[likely]]
    return hash;
  return in_partition_of_its_own(hash, key);
}

}  // namespace rdmacc
