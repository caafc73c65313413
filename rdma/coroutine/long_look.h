#pragma once
#include <cstdint>
#include <vector>

#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// Looks at all that a map has by offset, which may be hundreds of thousands, and lets other
// coroutines run in between: what they add is left for the next time, what they have taken out is
// passed over. `look` is given each entry, which it may change, and does not yield; true: it is to
// go. Called outside of a coroutine, it looks at all of them at once.
template <typename Map, typename Look>
void look_at_all(Scheduler& scheduler, Map& map, Look&& look) {
  std::vector<uint64_t> offsets;
  offsets.reserve(map.size());
  for (const auto& [offset, entry] : map) offsets.push_back(offset);
  const bool yields = scheduler.in_coroutine();
  for (const uint64_t offset : offsets) {
    if (yields) scheduler.count_round();
    const auto found = map.find(offset);
    if (found != map.end() && look(offset, found->second)) map.erase(found);
  }
}

}  // namespace rdmacc
