#pragma once
#include <optional>
#include <vector>

#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// Which transactions hold a header or wait for it, as far as its words tell.
struct LockHold {
  bool shared = false;             // else exclusive
  bool granted = true;             // else it waits for the holder
  uint32_t holders = 1;            // of a shared lock, whose word is a count
  std::optional<WorkerId> worker;  // unknown of a shared lock
  // When its transaction began, on the fabric's clock; it locked later. Unknown where the word has
  // no ctts.
  std::optional<uint64_t> since_us;
};

std::vector<LockHold> holds_of(const LockedHeader& header);

}  // namespace rdmacc
