#pragma once
#include "engine/session.h"

namespace rdmacc {

// Rows that the transaction may know are written without a coroutine's help or with it: which, the
// key decides, so that nothing else of a seed's run depends on it.
inline bool writes_at_once(TableId table, std::string_view key) {
  return hash_key(table, key) % 3 != 0;
}
inline Status put_either(Session& session, TableId table, std::string_view key,
                         std::string_view row) {
  if (writes_at_once(table, key)) {
    if (const auto done = session.put_known(table, key, row)) return *done;
  }
  return session.put(table, key, row);
}
inline Status remove_either(Session& session, TableId table, std::string_view key) {
  if (writes_at_once(table, key)) {
    if (const auto done = session.remove_known(table, key)) return *done;
  }
  return session.remove(table, key);
}

}  // namespace rdmacc
