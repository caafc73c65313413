#pragma once
#include <deque>

#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/reclaimer.h"

namespace rdmacc {

// Rows that a multi-version protocol has deleted: the tuple stays in the index, since older
// transactions still read the versions before. The owner unlinks it once every transaction that is
// or comes is younger than the delete: after the clock has passed its stamp and two epochs have
// gone by since. What later readers of the tombstone left in rts goes into the gap header's.
//
// A reader that is about to insert the key again, or that has its absence from the tombstone, would
// lose to the unlinking. So one that is still being read, as its rts says, is left alone for
// another two epochs; for a bounded time, since scans read them all.
//
// The node's thread 0 alone. What is forgotten here (too many, or a node's restart before it looked
// again) stays a tombstone: correct, and used again when the key comes back.
class Tombstones {
 public:
  Tombstones(Worker& worker, const OwnedRegion& region, Arena& arena, HashIndexOwner& index,
             Reclaimer& reclaimer)
      : worker_(worker), region_(region), arena_(arena), index_(index), reclaimer_(reclaimer) {}

  // A slot that may be a tombstone: looked at later, so peers may say what they like.
  void add(uint64_t slot);
  // Something may be done now.
  bool pending() const;
  size_t count() const { return queue_.size(); }
  // Unlinks what is due, at most kUnlinksPerRound; yields.
  void collect();

 private:
  struct Tombstone {
    uint64_t slot;
    uint64_t identity, wts;  // as they were when it was added
    uint64_t rts;            // at the last look
    GracePeriod past{};      // since the clock had passed wts
    uint64_t until_us = 0;   // it is left to its readers no longer
  };
  enum class Fate { kWaits, kGone };

  bool as_added(const Tombstone& tombstone) const;
  Fate look_at(Tombstone& tombstone);

  static constexpr uint64_t kLeftToReadersUs = 10'000'000;
  static constexpr size_t kQueueMax = 1u << 20;
  static constexpr size_t kLooksPerRound = 4096;
  static constexpr uint64_t kPauseUsMin = 3'000, kPauseUsMax = 1'000'000;

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  HashIndexOwner& index_;
  Reclaimer& reclaimer_;
  std::deque<Tombstone> queue_;
  uint64_t next_look_us_ = 0;
  uint64_t pause_us_ = kPauseUsMin;
};

}  // namespace rdmacc
