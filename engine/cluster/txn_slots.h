#pragma once
#include <array>
#include <span>

#include "engine/cluster/timestamp.h"
#include "engine/storage/layout/control_area.h"
#include "rdma/coroutine/doorbell_batch.h"
#include "rdma/fabric/memory_region.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// The commit times of transactions, as far as others have a say in them (MAAT, RCBench §6.2.3): a
// slot of node 0's memory for each, which all reach by one-sided verbs. One of a coordinator's
// threads alone uses an object of this class.
//
//   S1  A transaction opens its slot (WRITE ctts | WRITE bound = running, without a bound) before
//       others can learn of it, and has it until it ends. So at the CAS of a chain
//       CAS bound | READ slot whose READ still shows its ctts, the bound was the transaction's.
//   S2  running b -> running b' < b, by another: it fixes no time that is later than b'.
//       running b -> fixed t <= b, by the transaction itself: it commits at t, or not at all.
//       Both are CASes of one word, so one of the two comes first, and the other one sees it.
//   S3  latest is raised before a time is fixed, and falls for no transaction. What finds another
//       ctts in the slot knows that the one it looks for has ended, and has fixed no later time.
//
// A transaction whose reads hold by their leases fixes no time, and commits at any: what replaces
// them comes behind the leases.
//
// The memory of a dead coordinator's slots stays as it is; the next one with its id goes on from
// their latest times.
class TxnSlots {
 public:
  TxnSlots(Worker& worker, const Topology& topology) : worker_(worker), layout_(topology) {}

  // A ctts whose slot is the transaction's until give_back(), unless another of this coordinator's
  // has it.
  uint64_t draw(TimestampClock& clock);
  bool has(uint64_t ctts) const { return owners_[index(ctts)] == ctts; }
  void give_back(uint64_t ctts);
  // S1. Only if it has(). `arena`: for the verbs, as below.
  Status open(uint64_t ctts, VerbArena& arena, VerbCounters& counters);

  // S2, of the transaction itself. `latest`: at which time it may commit at the latest; `time`, if
  // that is what it is now.
  Status fix(uint64_t ctts, uint64_t time, VerbArena& arena, VerbCounters& counters,
             uint64_t& latest);
  // S2, of others: none of them that has no time yet will fix one that is not before `time`.
  struct Bounded {
    uint64_t fixed = 0;    // the latest time of those that have one, or have ended
    uint64_t running = 0;  // the latest that is left to the others
  };
  Status bound(std::span<const uint64_t> others, uint64_t time, VerbArena& arena,
               VerbCounters& counters, Bounded& result);

 private:
  struct Image;
  GlobalAddress at(uint64_t ctts) const { return GlobalAddress::make(0, layout_.txn_slot(ctts)); }
  static size_t index(uint64_t ctts) { return (ctts >> 16) % kTxnSlotsPerWorker; }
  Status learn_latest(VerbArena& arena, VerbCounters& counters);
  DoorbellBatch batch(VerbCounters& counters) {
    return DoorbellBatch(worker_.scheduler(), counters);
  }

  Worker& worker_;
  const RegionLayout layout_;
  std::array<uint64_t, kTxnSlotsPerWorker> owners_{};  // their ctts; 0: none
  std::array<uint64_t, kTxnSlotsPerWorker> latest_{};  // once they are known
  bool latest_known_ = false;
};

}  // namespace rdmacc
