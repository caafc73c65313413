#pragma once
#include <optional>

#include "engine/storage/layout/hash_index.h"
#include "storage_cluster.h"

namespace rdmacc {

// The least that a coordinator must do to use an index: one-sided lookups, and inserts and erases
// under the gap header's lock. Keys are numbers; a row has no bytes but its key.
class TestIndex {
 public:
  TestIndex(StorageCluster::Coordinator& coordinator, const Topology& topology, TableMeta table)
      : coordinator_(coordinator), topology_(topology), table_(table) {}

  static constexpr uint32_t kRecordSize = 16;

  NodeId node_of(uint64_t key) const;
  // The slot's address, null if there is no such key. kUnavailable.
  Result<GlobalAddress> find(uint64_t key);
  Status insert(uint64_t key);
  // kNotFound.
  Status erase(uint64_t key);

 private:
  struct Place {
    GlobalAddress group;
    Header gap;
    uint64_t slot = 0;         // offset, 0 = absent
    uint64_t slot_entry = 0;   // offset of its entry
    uint64_t empty_entry = 0;  // offset of an empty one, 0 = none
    bool stable = false;
  };

  uint64_t hash_of(uint64_t key) const;
  Result<GlobalAddress> group_of(uint64_t hash, NodeId node);
  // Looks for the key; `locked_by` is 0 or our lock.
  Status look(uint64_t key, uint64_t locked_by, Place* place);
  Status locate_and_lock(uint64_t key, uint64_t ctts, Place* place);
  Status make_room(uint64_t key, uint64_t ctts, Place* place);
  void unlock(GlobalAddress header, uint64_t ctts);
  void link(const Place& place, GlobalAddress slot, uint64_t key, uint64_t ctts);
  Status fetch(GlobalAddress from, void* into, size_t bytes);

  StorageCluster::Coordinator& coordinator_;
  const Topology topology_;
  const TableMeta table_;
};

}  // namespace rdmacc
