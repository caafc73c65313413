/* The end of an index entry, by which it names its row: the row's key, and behind it the key's
 * length in two bytes, the greater one first. */
#pragma once
#include <stdint.h>

#include "pg_rdmacc/bridge/engine_bridge.h"

#define RDMACC_ENTRY_LENGTH_BYTES 2

/* False: the entry is too short to name a row. */
inline bool rdmacc_find_entry_key(BridgeBytes entry, BridgeBytes* key) {
  if (entry.size < RDMACC_ENTRY_LENGTH_BYTES) return false;
  const char* length = entry.data + entry.size - RDMACC_ENTRY_LENGTH_BYTES;
  const auto high = static_cast<uint8_t>(length[0]);
  const auto low = static_cast<uint8_t>(length[1]);
  const size_t size = static_cast<size_t>(high) << 8 | low;
  if (entry.size < size + RDMACC_ENTRY_LENGTH_BYTES) return false;
  *key = {length - size, size};
  return true;
}
