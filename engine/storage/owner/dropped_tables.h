#pragma once
#include <vector>

#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/reclaimer.h"

namespace rdmacc {

// Tables that are gone while slots of theirs are still handed out: of inserts under way, which
// their index did not reach, and those that transactions under way had locked, to which they may
// still give a block. Whether such a transaction commits or aborts, its slots here have no owner
// then, so this node takes them: when two epochs have gone by since the drop, every transaction
// that began before it has ended. Until then the directory keeps the entry, which says what a slot
// of the table looks like.
//
// The node's thread 0 alone. After a restart of the node nothing is listed: what no index reaches
// is retired then.
class DroppedTables {
 public:
  DroppedTables(Worker& worker, const OwnedRegion& region, Arena& arena, Directory& directory,
                HashIndexOwner& index, Reclaimer& reclaimer)
      : worker_(worker),
        region_(region),
        arena_(arena),
        directory_(directory),
        index_(index),
        reclaimer_(reclaimer) {}

  // The table is dropped and its index retired.
  void add(TableId id);
  // It will be retired here.
  bool awaits(uint64_t slot) const;
  bool pending() const;
  size_t count() const { return tables_.size(); }
  // Retires what is due; yields.
  void sweep();

 private:
  struct Dropped {
    TableId id;
    GracePeriod gone{};  // since it was dropped
    bool due = false;    // all that knew it has ended: its slots are gone through
    bool held = false;   // one of them was still locked
  };

  Dropped* due_table_of(uint64_t slot);

  // For a lock of a transaction that began after the drop, with a stale address.
  static constexpr uint64_t kLockedPauseUs = 10'000;

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  HashIndexOwner& index_;
  Reclaimer& reclaimer_;
  std::vector<Dropped> tables_;
  uint64_t next_look_us_ = 0;
};

}  // namespace rdmacc
