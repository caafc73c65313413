#pragma once
#include <deque>
#include <unordered_map>

#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/reclaimer.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// Blocks that workers have taken in advance, and those of old versions (tuple.h) until no
// transaction reads the versions any more. A worker gives one to a row with verbs alone, so the
// owner finds out by looking: a block of versions says which slot it is to belong to, and then the
// slot names it; one that holds a long record has another owner word. What a worker that has gone
// did not use is freed when the epochs show that it is resolved: resolution gives no row a block of
// versions, and the blocks of records that it installs other owner words.
//
// A row's block goes when every transaction that is or comes is younger than its newest version,
// and the row was not written for a while: one that is written all the time keeps it.
//
// The node's thread 0 alone. When a node is opened again, blocks that rows name are noted here;
// unused ones of workers that live on are orphaned allocations.
class VersionBlocks {
 public:
  VersionBlocks(Worker& worker, const OwnedRegion& region, Arena& arena, Directory& directory,
                HashIndexOwner& index, Reclaimer& reclaimer)
      : worker_(worker),
        region_(region),
        arena_(arena),
        directory_(directory),
        index_(index),
        reclaimer_(reclaimer) {}

  void reserve(uint64_t block, WorkerId worker);
  // The slot may name a block.
  void note_slot(uint64_t slot);
  // It is kept in advance, or was so a moment ago.
  bool lists(uint64_t block) const { return reserved_.contains(block); }
  // Of blocks that are kept in advance; yields where it is called from a coroutine.
  uint64_t reserved_bytes();
  void keep_for(uint64_t us) { kept_us_ = us; }
  // Pages are; blocks go as soon as no transaction reads them.
  bool scarce() const { return arena_.pages_left() < arena_.page_count() / kScarce; }
  bool pending() const;
  size_t count() const { return reserved_.size() + attached_.size(); }
  // Looks at some of them; yields.
  void sweep();

 private:
  struct Reserved {
    WorkerId worker;
    uint32_t incarnation;
    uint64_t tag;               // of the block
    GracePeriod worker_gone{};  // since the worker was seen to be gone
  };
  struct Attached {
    uint64_t slot, block;
  };
  enum class Fate { kStays, kGone, kDropped };

  uint64_t named_by(uint64_t slot) const;  // 0: none
  bool named(uint64_t block) const;
  bool still_handed_out(uint64_t block, const Reserved& by) const;
  void look_at_reserved();
  bool is_done(uint64_t block, Reserved& by);
  void raise_horizon();
  Fate look_at(const Attached& attached);

  static constexpr uint64_t kLookEveryUs = 500'000;
  static constexpr size_t kLooksPerRound = 16 * 1024;
  static constexpr size_t kDropsPerRound = 1024;  // each locks a row
  static constexpr uint64_t kScarce = 8;          // less than that share of the pages is left

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  HashIndexOwner& index_;
  Reclaimer& reclaimer_;
  std::unordered_map<uint64_t, Reserved> reserved_;
  std::deque<Attached> attached_;
  uint64_t next_look_us_ = 0;
  uint64_t kept_us_ = StorageService::kKeepVersionsUs;
  // Every transaction that is or comes is younger than the horizon.
  uint64_t horizon_us_ = 0;
  uint64_t next_horizon_us_ = 0;
  GracePeriod until_horizon_;
};

}  // namespace rdmacc
