#pragma once
#include <deque>

#include "engine/storage/layout/control_area.h"
#include "engine/storage/owner/arena.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// Epochs of reclamation. Every transaction announces the epoch E that it saw when it began in its
// worker's line; E rises by one when every transaction under way has announced E. A unit that was
// retired before E was read as e cannot be known to a transaction that began at e + 1 or later,
// and when E is e + 2 no earlier one is left: the unit is free.
//
// The epoch is read AFTER the units were retired, never remembered from before: an epoch that is
// too old would let them go too early.
class Reclaimer {
 public:
  Reclaimer(Worker& worker, const Topology& topology, Arena& arena);

  // Reads the lines at node 0, raises the epoch if it may rise, and frees what has waited long
  // enough. From a coroutine; a second caller returns at once. Nothing happens while node 0 is
  // away.
  void advance();
  bool busy() const { return busy_; }  // another coroutine advances
  bool pending() const { return busy_ || arena_.has_retired() || !limbo_.empty(); }
  // As last seen; 0 before the first advance().
  uint64_t epoch() const { return epoch_of(epoch_word_); }
  // Begins a new era. The epoch in which it began: when two have gone by since, every transaction
  // under way knows of it. 0: not now.
  uint64_t raise_era();
  // As last seen.
  uint64_t eras_left() const { return kErasMax - 1 - era_of(epoch_word_); }
  // How often it was read.
  uint64_t looks() const { return looks_; }

 private:
  struct Retired {
    uint64_t epoch;
    std::vector<uint64_t> offsets;
  };
  void reclaim_some(std::vector<uint64_t>& offsets);
  bool read_lines();
  bool all_quiet() const;
  bool raise_epoch();
  bool replace_epoch_word(uint64_t by);

  Worker& worker_;
  const Topology topology_;
  const RegionLayout layout_;
  Arena& arena_;
  GateLine* gate_ = nullptr;  // registered images
  WorkerLine* lines_ = nullptr;
  uint64_t* seen_ = nullptr;
  std::deque<Retired> limbo_;  // rising epochs
  uint64_t epoch_word_ = 0;
  uint64_t looks_ = 0;
  bool busy_ = false;
};

// Whether every transaction that was under way at a moment has ended, those of workers that are
// dead and not resolved included: two epochs after one that was read from then on.
//
// The look at the epoch has to begin after that moment. What was read before may be older than the
// epoch in which such a transaction began, also by many when node 0 was away, and two epochs later
// it may be under way still.
class GracePeriod {
 public:
  // Now is the moment.
  void begin(const Reclaimer& reclaimer) {
    CHECK(!begun());
    // The next look may be under way.
    looks_wanted_ = reclaimer.looks() + 2;
  }
  bool begun() const { return looks_wanted_ != 0; }
  // As of the last look.
  bool over(const Reclaimer& reclaimer) {
    CHECK(begun());
    if (epoch_ == 0 && reclaimer.looks() >= looks_wanted_) epoch_ = reclaimer.epoch();
    return epoch_ != 0 && reclaimer.epoch() >= epoch_ + 2;
  }

 private:
  uint64_t looks_wanted_ = 0;  // 0: has not begun
  uint64_t epoch_ = 0;         // as such a look showed it; 0: not yet
};

}  // namespace rdmacc
