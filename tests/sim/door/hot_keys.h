#pragma once
#include <string>

#include "engine/storage/layout/hash_index.h"

namespace rdmacc {

// Keys that crowd in a few groups of an index, so that these split again and again with a few
// hundred rows: of the groups that a table begins with, on every node alike, the first `groups`.
// Deep keys are all of one group until it has split kDeepBits times: the root array then takes more
// than a page. Of `long_ones` every third number has a key that no record has room for: it stands
// in an overflow block, of a deleted row as well.
class HotKeys {
 public:
  static constexpr uint32_t kGroupsMax = 1u << kInitialDepth;

  static constexpr uint32_t kDeepBits = 15;

  explicit HotKeys(uint32_t groups, bool long_ones = false)
      : groups_(groups), long_ones_(long_ones) {
    CHECK(groups > 0 && groups <= kGroupsMax);
  }

  // "<prefix><hex of the number>", or that with a letter or two behind it; at most 16 bytes, but
  // for long ones.
  std::string key(TableId table, char prefix, uint64_t number) const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string key(1, prefix);
    for (int shift = 44; shift >= 0; shift -= 4) key += kDigits[number >> shift & 15];
    if (long_ones_ && number % 3 == 0) key.append(kLongBytes, '_');
    const size_t bytes = key.size();
    for (uint32_t salt = 0; salt < kSaltsMax && !hot(table, key); ++salt) {
      key.resize(bytes);
      key += static_cast<char>('a' + salt / 26 % 26);
      key += static_cast<char>('a' + salt % 26);
    }
    return key;
  }

  // As key(), of a number that is not used there; takes some 30,000 hashes.
  std::string deep_key(TableId table, char prefix, uint64_t number) const {
    std::string key = prefix + std::to_string(number);
    const size_t bytes = key.size();
    for (uint32_t salt = 0; group_bits_of(hash_key(table, key), kDeepBits) != 0; ++salt) {
      key.resize(bytes);
      key.append(reinterpret_cast<const char*>(&salt), sizeof(salt));
    }
    return key;
  }

 private:
  static constexpr uint32_t kSaltsMax = 26 * 26;
  static constexpr size_t kLongBytes = 100;

  bool hot(TableId table, std::string_view key) const {
    return group_bits_of(hash_key(table, key), kInitialDepth) < groups_;
  }

  uint32_t groups_;
  bool long_ones_;
};

}  // namespace rdmacc
