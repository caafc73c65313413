#pragma once
#include "engine/session.h"

namespace rdmacc {

// Rows by their keys, kept or in a batch: which, the keys decide, so that nothing else of a
// seed's run depends on it.
inline bool reads_in_batch(TableId table, std::span<const std::string_view> keys) {
  return !keys.empty() && hash_key(table, keys.front()) % 2 == 0;
}
inline Status read_either(Session& session, TableId table, std::span<const std::string_view> keys,
                          ReadBatch& batch, std::span<RowView> rows,
                          uint32_t visible_before = kEveryCommand) {
  return reads_in_batch(table, keys) ? session.read_batch(table, keys, batch, rows, visible_before)
                                     : session.get_many(table, keys, rows, visible_before);
}

}  // namespace rdmacc
