#pragma once
#include <unordered_map>

#include "engine/storage/owner/orphaned_allocations.h"

namespace rdmacc {

// Slots that workers keep in advance for their inserts (engine/txn/driver/slot_pool.h): handed out,
// empty, and locked by a tag, a ctts of the worker that no transaction has. A worker gives one to a
// transaction with verbs alone, by CAS from the tag to the transaction's ctts, and back when that
// aborts; so the owner finds out by looking at the lock word. Of a table that is gone the owner
// takes them back by CAS from the tag to 0: of the two, one wins. Those of a worker that has gone
// become orphaned allocations, unless its resolution has discarded them before.
//
// The node's thread 0 alone. When a node is opened again, what is locked by a living worker and no
// row's is listed again; what is locked otherwise is an orphaned allocation.
class ReservedSlots {
 public:
  ReservedSlots(Worker& worker, const OwnedRegion& region, Arena& arena, Directory& directory,
                HashIndexOwner& index, OrphanedAllocations& orphans)
      : worker_(worker),
        region_(region),
        arena_(arena),
        directory_(directory),
        index_(index),
        orphans_(orphans) {}

  // Handed out and locked by `tag`, of a worker of this incarnation.
  void add(uint64_t slot, uint64_t tag, uint32_t incarnation);
  // When the node is opened again: a slot that is locked by `word`, a tag or the ctts of a
  // transaction that has taken it. False: it never was kept, it is a row's, or its worker is gone.
  bool adopt(uint64_t slot, uint64_t word);
  // It is kept, and no transaction's at the moment (or it was adopted, and has not changed).
  bool lists(uint64_t slot) const;
  // It is kept, or a transaction of its worker has it and may give it back.
  bool held_by_worker(uint64_t slot) const;
  // How many are, of live tables; yields where it is called from a coroutine.
  uint64_t unused();
  enum class OfTables : uint8_t { kGone, kAll };
  // Takes back what is kept and was not adopted, some hundred at a time; yields. How many it got.
  size_t take_back(OfTables of);
  bool pending() const;
  size_t count() const { return slots_.size(); }
  // Forgets what rows have got, and takes back what has no user any more; yields.
  void sweep();

 private:
  struct Reserved {
    uint64_t tag;
    uint64_t identity;         // table and incarnation: another owner's slot has another
    uint32_t incarnation = 0;  // of the worker
    // Locked by the worker when the node was opened: the tag may be a transaction's ctts, whose
    // insert is committed and not installed yet. It is the worker's alone to give back.
    bool adopted = false;
  };

  bool as_added(uint64_t slot, const Reserved& reserved) const;
  bool held_by_worker(uint64_t slot, const Reserved& reserved) const;
  void hand_over_of_dead();

  static constexpr uint64_t kLookEveryUs = 500'000;

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  HashIndexOwner& index_;
  OrphanedAllocations& orphans_;
  std::unordered_map<uint64_t, Reserved> slots_;
  uint64_t next_look_us_ = 0;
};

}  // namespace rdmacc
