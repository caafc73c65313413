#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/storage/layout/key_hash.h"
#include "engine/txn/stages/find.h"

// Unvalidated reads: rows read outside of any protocol. Nothing is locked, nothing joins a read
// set, and nothing is promised: the bytes may be stale, torn, or of a version that is being
// installed. A caller takes them for a hint and has something to tell whole rows from others.

namespace rdmacc {

// Finds the key and takes its newest record as it lies there, with verbs over the wire, whatever
// the transaction's stage plan. Only what ends a transaction is an error: a search that met too
// many writers, or bytes that made no sense, is a key that was not found. `found` and `row`, in
// the arena of the context, are the answer.
Status unvalidated_read_key(const StageContext& context, TableId table, std::string_view key,
                            bool& found, std::string_view& row);

// Rows from unvalidated reads that their readers want to have again without asking. A
// coordinator's, its thread alone. One that was not used since the last time that room was looked
// for makes room: a hit writes nothing but that, and no other entry.
class UnvalidatedReadCache {
 public:
  explicit UnvalidatedReadCache(size_t entries_max) : entries_max_(entries_max) {}
  // Its view ends with the next put() or forget(); nullptr: not here.
  const std::string* find(TableId table, std::string_view key);
  void put(TableId table, std::string_view key, std::string_view row);
  void forget(TableId table, std::string_view key);

 private:
  struct Entry {
    TableId table = kNoTable;
    bool used = false;  // since room was looked for here
    std::string key, row;
  };
  Entry* locate(TableId table, std::string_view key);
  size_t make_room();

  const size_t entries_max_;
  std::vector<Entry> entries_;
  size_t next_ = 0;  // to be looked at when room is needed
  // By hash; of two keys with the same one, the later.
  std::unordered_map<uint64_t, size_t> places_;
};

}  // namespace rdmacc
