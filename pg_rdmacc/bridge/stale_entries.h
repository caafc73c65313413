#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/index/ordered_index.h"

// Entries that are not what is computed of their rows now: an index's function was replaced since,
// or depends on a setting. A removal does not find its entry then. So it is when another
// transaction has changed the row; but then the next attempt reads another row, and removes another
// entry. Where two batches in a row have missed one, the changes are made one by one; an entry that
// is missing twice then is looked for by its row, in the whole index.

namespace rdmacc::bridge {

// What the session's last attempts did not find, by index.
class MissingEntries {
 public:
  void batch_missed(uint32_t index);
  // Whether changes of the index have to be made one by one, to learn which entry is missing.
  bool suspects(uint32_t index) const;
  // Of one change: true if it was the one that the last attempt did not find, or comes behind it.
  bool is_stale(uint32_t index, std::string_view entry);
  // All changes of the index were made, and none was missing.
  void forget(uint32_t index) { of_index_.erase(index); }

 private:
  struct Missing {
    int batches = 0;
    std::string entry;
    bool confirmed = false;  // has been missing twice
  };
  std::map<uint32_t, Missing> of_index_;
};

// Removes the entry of the row that the computed one names, if there is one.
Status remove_stale_entry(Session& session, const IndexRef& index, std::string_view computed);

}  // namespace rdmacc::bridge
