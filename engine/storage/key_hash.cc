#include "engine/storage/key_hash.h"

#include <xxhash.h>

namespace rdmacc {

uint64_t hash_key(TableId table, std::string_view key) {
  // The odd multiplier spreads neighbouring table ids over the whole seed.
  const uint64_t seed = (table + 1ull) * 0x9E3779B97F4A7C15ull;
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

}  // namespace rdmacc
