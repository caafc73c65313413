#pragma once
#include <boost/container/small_vector.hpp>
#include <span>
#include <vector>

#include "engine/cluster/timestamp.h"
#include "engine/storage/wire/storage_client.h"

namespace rdmacc {

// Slots that a worker keeps in advance, by table and node, so that an insert is verbs alone: each
// is locked by a tag, a ctts that no transaction has, and becomes a transaction's by CAS from the
// tag to its ctts (engine/storage/owner/reserved_slots.h has the owner's side). How many are kept
// follows use: a worker that inserts now and then keeps none, and asks for each as it needs it. The
// nodes are asked by a coroutine of its own, for which no transaction waits.
//
// One per coordinator, its thread alone; keep it as long as its worker's scheduler is stepped.
class SlotPool {
 public:
  using SlotRequest = StorageClient::SlotRequest;
  // A slot that a transaction has from here.
  struct Taken {
    uint64_t tag;
    SlotRequest slot;
  };
  using Slots = boost::container::small_vector<Taken, 16>;

  // Keeps at most `kept_max` of a table on a node; 0: none.
  SlotPool(Worker& worker, StorageClient& storage, TimestampClock& clock, uint32_t kept_max)
      : worker_(worker),
        storage_(storage),
        clock_(clock),
        kept_max_(std::min(kept_max, kReservedSlotsMax)) {}
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // Fills in the slots of those requests that want one, as far as there are any, locked by `ctts`;
  // they are behind the others in `taken` then. Not ok: a node is lost, and nothing more is taken.
  Status take(std::span<SlotRequest> requests, uint64_t ctts, Slots& taken, VerbArena& arena,
              VerbCounters& counters);
  // By a transaction that ends without them and still has them locked; empties `taken`. Not ok:
  // what a lost node has is found by its owner.
  Status put_back(Slots& taken, uint64_t ctts, VerbArena& arena, VerbCounters& counters);
  // When the worker inserts no more: the nodes have all of them back. Waits for `us_max` at most
  // for those that are on their way.
  void give_back(uint64_t us_max);
  // Addresses of a dropped table may become anything now: what is kept goes back to its nodes, by a
  // coroutine of its own, and whatever is used gets new ones.
  void renew();
  // How many are kept of a table on a node.
  size_t kept(NodeId node, TableId table) const;

 private:
  static constexpr uint32_t kKeptMin = 8;
  static constexpr size_t kStocksMax = 64;
  // Asked for more often than that, a stock doubles; less often, it halves.
  static constexpr uint64_t kSoonUs = 50'000, kLateUs = 5'000'000;

  struct Stock {
    NodeId node;
    TableId table;
    std::vector<Taken> slots = {};
    uint32_t wanted = 0;    // how many are kept after a refill
    uint32_t taken = 0;     // by the operation under way
    uint64_t asked_us = 0;  // when it was found low
    bool refilling = false;
  };

  const Stock* find(NodeId node, TableId table) const;
  Stock* find(NodeId node, TableId table);
  Stock& stock_of(NodeId node, TableId table);
  void make_room();
  std::vector<Taken> take_all();
  bool spawn_free(std::vector<Taken>& slots);
  void keep(const Taken& slot);
  void note_use(Stock& stock);
  void refill(Stock& stock);
  void refilled(NodeId node, TableId table, const Status& status, uint64_t tag,
                std::span<const SlotRequest> got);
  void free(std::vector<Taken> slots);

  Worker& worker_;
  StorageClient& storage_;
  TimestampClock& clock_;
  const uint32_t kept_max_;
  std::vector<Stock> stocks_;
  std::vector<Taken> outdated_;  // of an era that has ended: not to be used, and still to go back
  uint32_t on_their_way_ = 0;    // refills
  bool closed_ = false;          // all are to go back
};

}  // namespace rdmacc
