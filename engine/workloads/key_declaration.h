#pragma once
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "engine/session.h"

namespace rdmacc {

enum class KeyUse : uint8_t { kRead, kWrite, kInsert };

constexpr uint32_t kDeclaredKeyBytesMax = 16;

// A key that a transaction may touch. kWrite: its row may be read, changed or removed, or put
// there; kInsert: a row may be put there, and is not read.
struct DeclaredKey {
  TableId table = kNoTable;
  KeyUse use = KeyUse::kRead;
  uint8_t length = 0;
  std::array<char, kDeclaredKeyBytesMax> bytes{};

  std::string_view key() const { return {bytes.data(), length}; }
};

// What a transaction will touch, said before it runs: a superset of what it does touch, each key
// once, for protocols that order transactions by it.
struct KeyDeclaration {
  std::vector<DeclaredKey> keys;
  // It also inserts rows whose keys follow from a row that it declares to write, and no other
  // procedure touches those without declaring that row, so that the declared keys order these, too.
  // Where they will be stored is not known.
  bool derived_inserts = false;

  void clear() {
    keys.clear();
    derived_inserts = false;
  }
  void add(TableId table, std::string_view key, KeyUse use) {
    CHECK(key.size() <= kDeclaredKeyBytesMax);
    DeclaredKey declared;
    declared.table = table;
    declared.use = use;
    declared.length = static_cast<uint8_t>(key.size());
    std::memcpy(declared.bytes.data(), key.data(), key.size());
    keys.push_back(declared);
  }
};

}  // namespace rdmacc
