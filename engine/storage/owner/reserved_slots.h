#pragma once
#include <map>
#include <span>

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

  // Handed out together and locked by `tag`, of a worker of this incarnation.
  void add(std::span<const uint64_t> slots, uint64_t tag, uint32_t incarnation);
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
  // Those that rows have got, or that were taken back, since the last look among them.
  size_t count() const { return count_; }
  // Forgets what rows have got, and takes back what has no user any more; yields.
  void sweep();

 private:
  struct Slot {
    uint64_t offset;
    uint64_t identity;  // table and incarnation: another owner's slot has another
    bool operator<(const Slot& other) const { return offset < other.offset; }
  };
  // What was handed out together. Nearly all of it are rows when it is looked at for the first
  // time.
  struct Batch {
    uint32_t incarnation = 0;  // of the worker
    // Locked by the worker when the node was opened: the tag may be a transaction's ctts, whose
    // insert is committed and not installed yet. It is the worker's alone to give back.
    bool adopted = false;
    std::vector<Slot> slots = {};  // ascending
  };
  struct Kept {
    uint64_t slot, tag;
  };

  using Batches = std::map<uint64_t, Batch>;  // by tag
  template <typename Look>
  void look_at_all(Look&& look);
  // nullptr: it does not name the slot.
  static const Slot* find_in(const Batch& batch, uint64_t slot);
  bool as_added(const Slot& slot) const;
  bool of_gone_table(const Slot& slot) const;
  size_t take(std::span<const Kept> kept);

  static constexpr uint64_t kLookEveryUs = 500'000;
  static constexpr size_t kTakenAtOnce = 256;

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  HashIndexOwner& index_;
  OrphanedAllocations& orphans_;
  Batches batches_;
  size_t count_ = 0;
  uint64_t next_look_us_ = 0;
};

}  // namespace rdmacc
