#pragma once
#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/storage/layout/region_layout.h"
#include "rdma/rpc/worker.h"

// A worker's copies of the directory entries and root arrays of the tables it uses. They may be
// stale: a group's gap header says whether it is the right one, and refresh() looks again.

namespace rdmacc {

struct CachedRoot {
  uint64_t bits = 0;              // IndexRoot; 0 = not read yet
  bool doubtful = false;          // its table may be gone: the directory is to be asked
  bool patched = false;           // read at several times: it need not be a partition
  std::vector<uint64_t> groups;   // 2^depth offsets
  std::optional<bool> partition;  // is_partition(groups), once a scan has asked

  uint32_t depth() const { return IndexRoot{bits}.depth(); }
};

struct CachedTable {
  TableId id = kNoTable;
  uint32_t record_size = 0;
  uint32_t history = 0;
  std::vector<CachedRoot> roots;  // by node
};

class TableCache {
 public:
  TableCache(Worker& worker, const Topology& topology)
      : worker_(worker), topology_(topology), layout_(topology) {}

  // The table with at least its sizes known. kNotFound: dropped, or never was.
  Result<CachedTable*> get(TableId id, VerbCounters& counters) {
    CachedTable* recent = recent_[id % kRecent];
    if (recent != nullptr && recent->id == id) return recent;
    return find(id, counters);
  }
  // Makes sure that the root array of `node` is there; with `again`, reads it anew.
  Status load_root(CachedTable& table, NodeId node, bool again, VerbCounters& counters);
  // The group of one hash anew, which was split: where the array is still the one that is cached,
  // its place in it is all that is read.
  Status refresh_group(CachedTable& table, NodeId node, uint64_t hash, VerbCounters& counters);
  // The group that a hash belongs to, as far as the cached root of `node` knows.
  static uint64_t group_of(const CachedTable& table, NodeId node, uint64_t hash) {
    const CachedRoot& root = table.roots[node];
    return root.groups[group_bits_of(hash, root.depth())];
  }
  // For a group_of() that is soon to come.
  [[gnu::always_inline]] static void prefetch_group(const CachedTable& table, NodeId node,
                                                    uint64_t hash) {
    const CachedRoot& root = table.roots[node];
    if (root.bits != 0) __builtin_prefetch(&root.groups[group_bits_of(hash, root.depth())]);
  }
  // Other coroutines may hold the table's address: it lives until none is under way.
  void forget(TableId id);
  // Root arrays name groups; those of a dropped table may become anything now.
  void doubt_roots();
  static bool needs_root(const CachedTable& table, NodeId node) {
    return table.roots[node].bits == 0 || table.roots[node].doubtful;
  }

 private:
  Result<CachedTable*> find(TableId id, VerbCounters& counters);

  Worker& worker_;
  const Topology topology_;
  const RegionLayout layout_;
  std::unordered_map<TableId, std::unique_ptr<CachedTable>> tables_;
  // Of them, those that were asked for last, by their numbers.
  static constexpr size_t kRecent = 16;
  std::array<CachedTable*, kRecent> recent_{};
  std::vector<std::unique_ptr<CachedTable>> forgotten_;
};

}  // namespace rdmacc
