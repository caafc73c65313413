#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rdmacc {

// A record's bytes are the key's length, the key and the row. False when they do not parse.
inline bool split_record(std::string_view record, std::string_view& key, std::string_view& row) {
  uint32_t key_bytes = 0;
  if (record.size() < sizeof(key_bytes)) return false;
  memcpy(&key_bytes, record.data(), sizeof(key_bytes));
  if (key_bytes > record.size() - sizeof(key_bytes)) return false;
  key = record.substr(sizeof(key_bytes), key_bytes);
  row = record.substr(sizeof(key_bytes) + key_bytes);
  return true;
}

inline bool is_record_of(std::string_view key, std::string_view record) {
  std::string_view found, row;
  return split_record(record, found, row) && found == key;
}

}  // namespace rdmacc
