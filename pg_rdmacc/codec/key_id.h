/* 128 bits of hash that stand for a table's key where only equality is asked for, within one
 * transaction of one backend: two keys of one id are as good as impossible. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "common/hashfn.h"
}

struct RdmaccKeyId {
  uint64 first;
  uint64 second;
};

inline RdmaccKeyId rdmacc_key_id(uint32 table, BridgeBytes key) {
  constexpr uint64 kSecondSeed = 0x9e3779b97f4a7c15ULL;
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data);
  const int size = static_cast<int>(key.size);
  return {.first = hash_bytes_extended(bytes, size, table),
          .second = hash_bytes_extended(bytes, size, table ^ kSecondSeed)};
}
