#pragma once
#include <span>

#include "engine/txn/driver/table_cache.h"
#include "engine/txn/stages/find.h"

namespace rdmacc {

// A header that may be a key's: of the location cache, or of an entry with its tag.
struct Candidate {
  KeyWork* key;  // kPending; its `access` has the header and nothing else
  const CachedTable* table;
};

// Reads all candidates by the protocol's read rule, in common rounds, and compares keys. What is
// the key's becomes its `result`, and its location is noted. What is not is given back, unless
// another one of `all` (the keys of the whole operation) has met it, too: the key stays kPending
// with an empty `access`. When one aborts, those that were not read yet stay as they are. Errors as
// find_keys(); whatever is locked then is in `access`.
Status read_candidates(StageContext& context, std::span<const KeyWork> all,
                       std::span<const Candidate> candidates);

}  // namespace rdmacc
