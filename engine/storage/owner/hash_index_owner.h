#pragma once
#include <boost/container/small_vector.hpp>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "engine/storage/owner/directory.h"
#include "engine/storage/owner/group_split.h"
#include "engine/storage/owner/index_walk.h"

namespace rdmacc {

// Groups that wait for their turn, by their offsets: each at most once, so that there are no more
// than groups. Which ones are in it is a bit for each place that a group may have: where rows come
// in quickly thousands of groups wait, and a set of them would be in no cache.
class GroupQueue {
 public:
  bool empty() const { return groups_.empty(); }
  size_t size() const { return groups_.size(); }
  void push_back(uint64_t group) {
    if (note(group)) groups_.push_back(group);
  }
  void push_front(uint64_t group) {
    if (note(group)) groups_.push_front(group);
  }
  uint64_t pop_front() {
    const uint64_t group = groups_.front();
    groups_.pop_front();
    queued_[place_of(group)] = false;
    return group;
  }

 private:
  // No two groups have one place.
  static constexpr uint64_t kPlaceBytes = 512;
  static_assert(kPlaceBytes <= sizeof(Group));
  static size_t place_of(uint64_t group) { return group / kPlaceBytes; }
  // False: it is there already.
  bool note(uint64_t group) {
    const size_t place = place_of(group);
    if (place >= queued_.size()) queued_.resize(place + place / 2 + 1);
    if (queued_[place]) return false;
    queued_[place] = true;
    return true;
  }

  std::deque<uint64_t> groups_;
  std::vector<bool> queued_;
};

// What the owner node alone does with the indexes of its tables: build, chain buckets, split,
// take apart. Used by the node's thread 0.
//
// Splits and drops are coroutines that yield; idle() keeps them apart. Of dropped tables one is
// taken apart after the other. Chaining a bucket does not yield, and is not done while a split
// holds the gap header's lock: for a transaction it is done under the lock of that.
class HashIndexOwner {
 public:
  // An extend request asks for no more empty entries than this.
  static constexpr uint32_t kExtendEntriesMax = 1u << 20;
  static constexpr size_t kTriesPerRound = 256;
  // Groups of a table fill at about the same time. One that has to wait for more than these gets a
  // spare bucket meanwhile.
  static constexpr size_t kQueuedWithoutSpares = 32;
  // Entries of a group that a table is expected to have, at most; the share of the memory that may
  // be taken for groups that are expected.
  static constexpr uint64_t kEntriesExpected = 40, kExpectedShare = 16;

  HashIndexOwner(Worker& worker, const Topology& topology, const OwnedRegion& region, Arena& arena,
                 Directory& directory);

  // The parts of an empty index; the caller publishes the root. kNoSpace leaves nothing behind.
  Result<IndexRoot> build(TableId id);
  // A table is about to be dropped: no split and no Still begins before the end of retire_all(),
  // and none is under way; yields. It does not wait for what is left of other dropped tables.
  void begin_drop();
  // Gives everything that is reachable from the dropped table's root to limbo, and ends what
  // begin_drop() began; yields.
  void retire_all(TableId id);
  void cancel_drop() { --drops_; }

  // What the table's part here occupies, as `asker` is told; kNotFound. Yields; other changes to
  // the index's form wait.
  Result<TableSize> size_of(TableId id, WorkerId asker);

  // Chains buckets behind a home bucket until its chain has `entries` empty entries.
  // kInvalidArgument unless `ctts` holds the gap header's lock.
  Status extend(uint64_t group, uint32_t bucket, uint32_t entries, uint64_t ctts);
  // A worker says that a chain of the group has no empty entry left. What is none of a live table's
  // is passed over: a hint may be late.
  void split_soon(uint64_t group);
  // A table is about to have that many rows here: its groups are split, as far as a small part of
  // the memory will do, before they fill. A hint, too; it is forgotten when memory has run out.
  void expect_rows(TableId id, uint64_t rows);
  // ---- For rows that the owner puts in place itself (storage_load.cc); does not yield. Where a
  // key's entry goes: in its group's chain of that bucket.
  struct Place {
    uint64_t group = 0;   // 0: the index makes no sense
    bool locked = false;  // the group, by a split or a transaction: what follows is not looked for
    uint32_t empty = 0;   // entries of the chain
    uint64_t entry = 0;   // the first of these
    boost::container::small_vector<uint64_t, 4> same_tag;  // slots whose keys may be this one
  };
  void find_place(TableId id, uint64_t hash, Place& place) const;
  // Chains a bucket behind it, where it has no empty entry.
  Status extend(TableId id, uint64_t hash, Place& place);
  // A chain has no empty entry left, or will have none.
  void note_full(uint64_t group) { queue_.push_back(group); }
  bool linked(uint64_t slot) const;
  // Before linked() is asked of a slot, of which the header is in the cache already.
  void prefetch_linked(uint64_t slot) const;
  // By a transaction, in its lock word or in SUNDIAL's.
  bool locked(uint64_t header) const;
  // Retires a slot under a new incarnation. False if it is not in use.
  bool retire_slot(uint64_t slot);

  // Takes a tombstone with that stamp, last read at `rts`, out of the index and retires its slot;
  // yields. False: not now.
  bool unlink_tombstone(uint64_t slot, uint64_t wts, uint64_t rts);

  // Takes the block of old versions from a slot whose newest version has that stamp; yields. False:
  // not now.
  bool drop_versions(uint64_t slot, uint64_t block, uint64_t wts);

  // Is told of changes from now on (nullptr: none is). Not owned.
  void observe(StructureObserver* observer) { splitter_.observe(observer); }
  StructureObserver* observer() const { return splitter_.observer(); }

  // Waits, yielding, until no split, no drop and no Still is under way. False: not by the deadline.
  bool wait_until_idle(uint64_t deadline_us = UINT64_MAX);
  // No split and no drop begins while it lives; none is under way once it is there. Yields.
  class Still {
   public:
    explicit Still(HashIndexOwner& index) : index_(index) {
      index_.wait_until_idle();
      index_.busy_ = true;
    }
    ~Still() { index_.busy_ = false; }
    Still(const Still&) = delete;
    Still& operator=(const Still&) = delete;

   private:
    HashIndexOwner& index_;
  };
  bool split_pending() const { return !idle() || !queue_.empty(); }
  // Groups whose split found no memory are due for another try.
  bool retry_due() const { return !failed_.empty() && worker_.endpoint().now_us() >= retry_at_us_; }
  // Splits what is queued, in kTriesPerRound tries at most, of which a split takes three; yields.
  void split_queued();
  uint64_t splits() const { return splits_; }
  uint64_t last_split_us() const { return splitter_.last_stamp_us(); }
  size_t groups_queued() const { return queue_.size(); }

  // ---- While the node is being opened: no yields.
  // Finishes or undoes the split that the earlier process was in.
  Status repair(TableId id) { return splitter_.repair(id); }
  // Unlocks a header that one of this node's threads had locked, and that no split needs.
  void break_own_lock(uint64_t header) { splitter_.break_own_lock(header); }
  bool own_lock(uint64_t lock) const { return splitter_.own_lock(lock); }
  bool own_worker(WorkerId worker) const { return splitter_.own_worker(worker); }
  // Marks all units that are reachable from a live table's root as used; *slots is the number of
  // linked ones. kCorrupt if the index makes no sense.
  Status mark(TableId id, uint64_t* slots);

 private:
  // May a split, a Still or the like begin?
  bool idle() const { return !busy_ && drops_ == 0; }
  uint32_t depth_wanted(TableId id) const;
  void try_later(uint64_t group);
  void enqueue_failed();
  void try_split(uint64_t group);
  uint64_t entry_place(uint64_t group, uint64_t slot) const;
  bool drop_versions_locked(uint64_t slot, uint64_t block, uint64_t wts);
  bool unlink_locked(uint64_t slot, uint64_t wts, uint64_t rts);
  Status chain_behind(uint64_t tail, uint32_t buckets);
  void chain_spares(TableId id, uint64_t group);
  void retire_group(TableId id, uint64_t group);
  void add_group(const DirectoryEntry& table, uint64_t group, WorkerId asker,
                 TableSize& size) const;
  void retire_blocks_of(uint64_t slot, const DirectoryEntry& table);
  Status mark_group(const DirectoryEntry& table, uint64_t group, uint64_t* slots);
  void mark_blocks_of(uint64_t slot, const DirectoryEntry& table);

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  const IndexWalk walk_;
  GroupSplitter splitter_;
  GroupQueue queue_;  // candidates for a split
  // Without memory for their split; all of them are queued again after a while, which doubles up to
  // kRetryUsMax until a split succeeds.
  static constexpr uint64_t kRetryUsMin = 1'000, kRetryUsMax = 1'000'000;
  std::set<uint64_t> failed_;
  uint64_t retry_at_us_ = 0, retry_after_us_ = kRetryUsMin;
  std::map<TableId, uint32_t> depths_wanted_;  // of tables that expect rows
  bool busy_ = false;      // a split, a Still or another change or count of an index is under way
  uint32_t drops_ = 0;     // of tables that are gone, or about to be, and are not yet taken apart
  bool retiring_ = false;  // one of these is being taken apart
  uint64_t splits_ = 0;
};

}  // namespace rdmacc
