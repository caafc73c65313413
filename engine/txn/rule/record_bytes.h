#pragma once
#include <string_view>

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

inline bool is_record_of(std::string_view key, std::string_view record) {
  std::string_view found, row;
  return split_record(record, found, row) && found == key;
}

}  // namespace rdmacc
