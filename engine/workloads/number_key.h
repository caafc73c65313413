#pragma once
#include <array>
#include <cstring>
#include <string_view>

#include "rdma/base/check.h"

namespace rdmacc {

// A number as a key: 8 bytes, big-endian, so that keys sort as their numbers do. Lives on the
// caller's stack; views of it end with it.
class NumberKey {
 public:
  NumberKey() = default;
  explicit NumberKey(uint64_t number) {
    const uint64_t big = __builtin_bswap64(number);
    std::memcpy(bytes_.data(), &big, sizeof(big));
  }
  operator std::string_view() const { return {bytes_.data(), bytes_.size()}; }  // NOLINT: implicit

  static uint64_t number_of(std::string_view key) {
    CHECK(key.size() == 8);
    uint64_t big = 0;
    std::memcpy(&big, key.data(), sizeof(big));
    return __builtin_bswap64(big);
  }

 private:
  std::array<char, 8> bytes_{};
};

}  // namespace rdmacc
