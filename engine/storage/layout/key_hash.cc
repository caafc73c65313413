#include "engine/storage/layout/key_hash.h"

// Most keys are short: their hash is a few instructions.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rdmacc {
namespace {

constexpr uint64_t kPartitionBits = ~0ull << 54;

uint64_t hash_of(TableId table, std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash_seed_of(table));
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

uint64_t KeyHash::of_any(std::string_view key) const {
  const uint64_t hash = hash_of(table_, key);
  if ((table_ & kDistributedTable) == 0) [[likely]]
    return hash;
  return in_partition_of_its_own(hash, key);
}

}  // namespace rdmacc
