#pragma once
#include <vector>

#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/reclaimer.h"

namespace rdmacc {

// A unit that a node finds in use by no index when it is opened again.
struct OrphanedAllocation {
  PageKind kind;
  uint64_t offset;
  uint64_t ctts;             // by which it was held: see holder_of
  uint32_t incarnation = 0;  // of that worker; 0: as it is when the unit is added, if it lives
  GracePeriod ownerless{};   // since it was seen to have no owner
};

// Slots that are locked or that an insert is about to link, and overflow blocks that carry their
// allocator's ctts. They may belong to a transaction under way (a block also to a log record), so
// they stay until the worker that allocated them is gone and resolved: when the epochs show that
// nothing of its is under way any more, what is still as it was found is freed. Rows of dropped
// tables have no owner once they are unlocked.
class OrphanedAllocations {
 public:
  OrphanedAllocations(Worker& worker, const OwnedRegion& region, Arena& arena, Directory& directory,
                      HashIndexOwner& index, Reclaimer& reclaimer)
      : worker_(worker),
        region_(region),
        arena_(arena),
        directory_(directory),
        index_(index),
        reclaimer_(reclaimer) {}

  void add(OrphanedAllocation orphan);
  // The ctts that locks a slot or, if it is live and unlocked, its stamp; 0 = neither. Transactions
  // that share a lock hold nothing that is theirs to free.
  static uint64_t holder_of(const OwnedRegion& region, uint64_t slot);
  // Some of them wait for the epoch only.
  bool pending() const;
  size_t count() const { return orphaned_allocations_.size(); }
  bool lists(uint64_t offset) const;
  // Looks for dead allocators and frees what they have left; yields.
  void sweep();

 private:
  uint32_t incarnation_of_holder(uint64_t ctts) const;
  bool as_found(const OrphanedAllocation& orphan) const;
  bool left_by_table(const OrphanedAllocation& orphan) const;
  void forget_referenced(std::vector<uint64_t>& blocks);

  static constexpr uint64_t kLookEveryUs = 1'000'000;

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  HashIndexOwner& index_;
  Reclaimer& reclaimer_;
  std::vector<OrphanedAllocation> orphaned_allocations_;
  uint64_t next_look_us_ = 0;
};

}  // namespace rdmacc
