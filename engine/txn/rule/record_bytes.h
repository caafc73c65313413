#pragma once
#include <string_view>

#include "engine/storage/layout/short_bytes.h"
#include "engine/storage/layout/tuple.h"

namespace rdmacc {

// A record's bytes are the key's length, the key and the row. False when they do not parse.
inline bool split_record(std::string_view record, std::string_view& key, std::string_view& row) {
  if (record.size() < kKeyLengthBytes) return false;
  const size_t key_bytes = key_bytes_of(record.data());
  if (key_bytes > record.size() - kKeyLengthBytes) return false;
  key = record.substr(kKeyLengthBytes, key_bytes);
  row = record.substr(kKeyLengthBytes + key_bytes);
  return true;
}

// Of a record that is known to be the key's.
inline std::string_view row_of(std::string_view key, std::string_view record) {
  return record.substr(kKeyLengthBytes + key.size());
}

inline bool is_record_of(std::string_view key, std::string_view record) {
  return record.size() >= kKeyLengthBytes + key.size() &&
         key_bytes_of(record.data()) == key.size() &&
         same_bytes(key.data(), record.data() + kKeyLengthBytes, key.size());
}

}  // namespace rdmacc
