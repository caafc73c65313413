#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

// Bytes of which there are mostly 8 to 16, as of keys: without a call.

namespace rdmacc {

inline bool same_bytes(const char* one, const char* other, size_t bytes) {
  if (bytes < 8 || bytes > 16) return std::memcmp(one, other, bytes) == 0;
  uint64_t a, b, last_a, last_b;
  std::memcpy(&a, one, 8);
  std::memcpy(&b, other, 8);
  std::memcpy(&last_a, one + bytes - 8, 8);
  std::memcpy(&last_b, other + bytes - 8, 8);
  return ((a ^ b) | (last_a ^ last_b)) == 0;
}

inline void copy_bytes(char* to, const char* from, size_t bytes) {
  if (bytes < 8 || bytes > 16) {
    std::memcpy(to, from, bytes);
    return;
  }
  uint64_t first, last;
  std::memcpy(&first, from, 8);
  std::memcpy(&last, from + bytes - 8, 8);
  std::memcpy(to, &first, 8);
  std::memcpy(to + bytes - 8, &last, 8);
}

}  // namespace rdmacc
