#pragma once
#include "engine/storage/owner/directory.h"
#include "engine/storage/owner/index_walk.h"
#include "engine/storage/owner/owner_writer.h"
#include "engine/storage/wire/structure_observer.h"

namespace rdmacc {

// Splits a group in two (extendible hashing), under the lock of its gap header, which the owner
// takes like any transaction. What is stored, in this order:
//
//   1  lock and SUNDIAL's lock bit of the group; a root array of twice the size, if needed
//   2  the sibling: locked, complete (entries, depth, stamps), not yet reachable
//   3  root slots of the sibling: from here on the split is finished, before, it is undone
//   4  the group's wts, incarnation, depth: no lookup that began before can still conclude that
//      a key is absent
//   5  entries that moved leave the group, its chains are compacted, empty buckets cut off
//   6  both are unlocked
//
// So at every point every key is reachable in a group that claims it or that is locked. While
// entries move, one that walks a chain may pass an entry by, or meet it twice: no reader believes
// what it has read under the owner's lock, whatever its timestamp (StageContext::judge_gap). The
// sibling's rts is larger than the lock: what an older reader has raised is not larger.
class GroupSplitter {
 public:
  // A group is worth splitting when a home bucket is full, or has chained buckets, and this much is
  // in it: little enough that few groups need a spare bucket before, and so much that groups are a
  // third full on average.
  static constexpr uint32_t kSplitEntriesMin = kEntriesPerBucket * kBucketsPerGroup * 3 / 7;
  // Or when so much is in one of its buckets and the one chained behind it: from there on a look-up
  // takes another round trip.
  static constexpr uint32_t kChainEntriesMax = 2 * kEntriesPerBucket;

  enum class Outcome {
    kSplit,
    kNotNeeded,  // or no longer there; room that was chained and not used is cut off
    kBusy,       // locked by a transaction
    kFailed,     // no memory
  };

  GroupSplitter(Worker& worker, const Topology& topology, const OwnedRegion& region, Arena& arena,
                Directory& directory);

  // From a coroutine, one at a time; the table is not dropped meanwhile. A group of less than
  // `depth_wanted` is worth splitting whatever is in it.
  Outcome split(TableId id, uint64_t group, uint32_t depth_wanted, uint64_t* sibling);
  uint64_t last_stamp_us() const { return last_us_; }
  void observe(StructureObserver* observer) { observer_ = observer; }
  StructureObserver* observer() const { return observer_; }
  // While the node is being opened: deals with all groups of the table that are locked by one of
  // this node's threads.
  Status repair(TableId id);
  // A lock word that a thread of this node has set.
  bool own_lock(uint64_t lock) const {
    return locked_exclusively(lock) && own_worker(worker_of_lock(lock));
  }
  bool own_worker(uint64_t worker) const {
    return worker >= first_thread_ && worker < uint64_t{first_thread_} + threads_;
  }
  // Frees a header that a thread of this node has locked; while the node is being opened.
  void break_own_lock(uint64_t header);

  // ---- For other changes that the owner makes to headers, one at a time like splits.
  OwnerWriter& verbs() { return verbs_; }
  bool lock(uint64_t header, uint64_t ctts);
  void unlock(uint64_t header, uint64_t sundial_wts, OwnerWriter& writer) const;
  // Where a lease in SUNDIAL's word ends, at most. A word that this node locked says it exactly.
  uint64_t lease_end(uint64_t sundial) const;

 private:
  struct Halves {
    TableId table = kNoTable;
    uint64_t group = 0, sibling = 0;
    uint32_t depth = 0;        // of the group before the split
    uint64_t stamp = 0;        // new wts of both
    uint64_t sundial_wts = 0;  // new wts and rts of both in SUNDIAL's word
  };

  bool worth_splitting(uint64_t group, uint32_t depth_wanted) const;
  // Behind which bucket of a chain there are only empty ones, more than an insert may want next;
  // they are listed. 0: nowhere.
  uint64_t before_empty_buckets(uint64_t group, uint32_t bucket,
                                std::vector<uint64_t>* empty) const;
  bool has_empty_buckets(uint64_t group) const;
  void cut_empty_buckets(uint64_t group, std::vector<uint64_t>* cut);
  Outcome split_locked(TableId id, uint64_t group, uint64_t ctts, uint64_t* sibling);
  Status grow_root(TableId id);
  Result<uint64_t> allocate_locked_group(uint64_t ctts);
  // Of each bucket's chain: the entries as they stand, with zeros for those that have moved.
  using KeptEntries = std::array<ChainEntries, kBucketsPerGroup>;
  Status fill_sibling(const Halves& halves, KeptEntries& kept);
  Status fill_chain(uint64_t home, const ChainEntries& entries);
  void abandon_sibling(uint64_t sibling);
  Halves halves_of(TableId id, uint64_t group, uint64_t sibling);

  // `kept`: what fill_sibling() has found; nullptr: while the node is being opened.
  Status finish(const Halves& halves, OwnerWriter& writer, const KeptEntries* kept);
  void publish(const Halves& halves, OwnerWriter& writer) const;
  // Removes what is not kept; buckets cut off are appended.
  void clean(uint64_t group, OwnerWriter& writer, const KeptEntries& kept,
             std::vector<uint64_t>* cut) const;
  void clean_chain(uint64_t group, uint32_t bucket, OwnerWriter& writer, const ChainEntries& kept,
                   std::vector<uint64_t>* cut) const;
  // While the node is being opened: what belongs to the group, each entry once.
  KeptEntries kept_of_opened(uint64_t group) const;
  bool belongs(uint64_t group, uint32_t depth, uint64_t entry) const;
  uint64_t next_ctts(uint64_t larger_than);

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Directory& directory_;
  const IndexWalk walk_;
  OwnerWriter verbs_;
  // The node's threads' worker ids: locks with these are the node's own.
  const WorkerId first_thread_, threads_;
  uint64_t last_us_ = 0;
  StructureObserver* observer_ = nullptr;
};

}  // namespace rdmacc
