#pragma once
#include "rdma/fabric/verb.h"

namespace rdmacc {

inline uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  return x ^ (x >> 32);
}

inline uint64_t hash_of_word(NodeId node, uint64_t offset, uint64_t value) {
  return mix(mix(GlobalAddress::make(node, offset).bits + 0x9E3779B97F4A7C15ull) ^ value);
}

}  // namespace rdmacc
