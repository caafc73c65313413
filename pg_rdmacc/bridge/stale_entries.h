#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/index/ordered_index.h"

// Entries that are not what is computed of their rows now: an index's function was replaced since,
// or depends on a setting. A removal does not find its entry then. So it is when another
// transaction has changed the row; but then the next attempt reads another row, and removes another
// entry. One that is missing twice in a row is looked for by its row, in the whole index.

namespace rdmacc::bridge {

// What the session's last attempts did not find, by index.
class MissingEntries {
 public:
  // Whether changes of the index have to be made one by one, to learn which entry is missing.
  bool suspects(uint32_t index) const { return of_index_.contains(index); }
  // Of a batch.
  void note(uint32_t index) { of_index_.try_emplace(index); }
  // Of one change: true if it was the one that the last attempt did not find, or comes behind it.
  bool is_stale(uint32_t index, std::string_view entry);
  // All changes of the index were made, and none was missing.
  void forget(uint32_t index) { of_index_.erase(index); }

 private:
  struct Missing {
    std::string entry;
    bool confirmed = false;  // has been missing twice
  };
  std::map<uint32_t, Missing> of_index_;
};

// Removes the entry of the same row, if there is one. An entry ends with its row's key and, in two
// bytes, that one's length (pg_rdmacc/index/index_entries.h).
Status remove_stale_entry(Session& session, const IndexRef& index, std::string_view computed);

}  // namespace rdmacc::bridge
