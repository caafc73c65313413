#pragma once
#include "engine/txn/driver/in_place_rounds.h"

// Which gap header guards a key that is to be inserted or unlinked, where verbs are carried out in
// place: the one that the cached root array names, if it says so itself. Nothing is read by the
// protocol, nor locked: the group's lock decides (lock.h).

namespace rdmacc {

// The group's place as far as it is known; null: its table or root array is not here.
inline GlobalAddress cached_group(const StageContext& context, TableId table, uint64_t hash,
                                  CachedTable*& cached) {
  auto found = context.table(table);
  const NodeId node = context.engine.map.primary_of(hash);
  if (!found.ok() || TableCache::needs_root(**found, node)) return {};
  cached = *found;
  return GlobalAddress::make(node, TableCache::group_of(*cached, node, hash));
}

// For a prefetch_gap() that is soon to come: where the group is lies in an array of any size.
inline void prefetch_cached_group(const StageContext& context, TableId table, uint64_t hash) {
  auto found = context.table(table);
  if (!found.ok()) return;
  TableCache::prefetch_group(**found, context.engine.map.primary_of(hash), hash);
}

// For a look_at_gap() that is soon to come, and for the entry that is placed in the home bucket.
template <typename Port>
void prefetch_gap(Port& port, const StageContext& context, TableId table, uint64_t hash) {
  CachedTable* cached = nullptr;
  const GlobalAddress group = cached_group(context, table, hash, cached);
  if (group.null()) return;
  port.prefetch(group, sizeof(Header));
  port.prefetch(group.plus(bucket_offset(0, home_bucket_of(hash))), sizeof(Bucket));
}

// True: `gap` is what the header said. A group that was split is looked for once more. False: the
// key is left to find_keys(), as where its node or table is gone.
template <typename Port>
bool look_at_gap(Port& port, StageContext& context, TableId table, uint64_t hash, Access& gap) {
  constexpr int kLooksMax = 2;
  for (int look = 0; look < kLooksMax; look++) {
    CachedTable* cached = nullptr;
    const GlobalAddress group = cached_group(context, table, hash, cached);
    if (group.null()) return false;
    const auto at = port.find_within(group, sizeof(Header));
    if (port.lost(at)) return false;
    Header seen;
    port.read_line(at, &seen, WordOrder::kAscending);
    if (port.failed()) return false;
    if (claims(seen, table, hash)) {
      gap = gap_as_seen(group, seen);
      return true;
    }
    const Status refreshed =
        context.engine.tables.refresh_group(*cached, group.node(), hash, context.counters);
    if (!refreshed.ok()) return false;
  }
  return false;
}

}  // namespace rdmacc
