#pragma once
#include <vector>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/wire/storage_client.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// Blocks that a worker keeps in advance, for old versions (engine/storage/layout/tuple.h) and for
// records that do not fit their slot (overflow.h), so that a write asks no node for memory. A kept
// block's owner word names the worker and no transaction; an install that makes it a
// row's writes that word. One that is used up soon is filled by a coroutine of its own, for which
// no transaction waits.
//
// One pool per worker, its thread alone; keep it as long as its worker's scheduler is stepped.
class BlockPool {
 public:
  BlockPool(Worker& worker, const Topology& topology, StorageClient& storage)
      : worker_(worker), topology_(topology), storage_(storage) {}

  // For the thread that owns the node's memory itself: a request to itself might find no coroutine
  // that is free to serve it.
  void take_from(StorageService& own) { own_ = &own; }

  struct Taken {
    GlobalAddress block;
    uint32_t unit_bytes = 0;
    uint32_t node_incarnation = 0;
  };
  // A block with room for `bytes` behind its header; waits for the node when there is none,
  // yielding. Null: the node has no memory now, or is away, or `bytes` is more than is kept.
  Taken take(NodeId node, uint64_t bytes, VerbCounters& counters);
  // One that nothing names nor ever will.
  void put_back(const Taken& taken);

  // Of a large transaction that has not used what it had taken: what goes beyond what the pool
  // would ever ask for goes back to the nodes. A small one's stays for its next attempt. Yields.
  void give_back_surplus(VerbCounters& counters) { give_back_beyond(false, counters); }
  // All that it keeps goes back to the nodes: when the worker ends, or memory is used up. Yields.
  // What is on its way is not waited for; end_asking() does, for `us_max` at most.
  void give_back(VerbCounters& counters) { give_back_beyond(true, counters); }
  void end_asking(uint64_t us_max);

 private:
  static constexpr uint32_t kBlocksMin = 4, kBlocksMax = 256;
  // From so many on, more are asked for when half of them are left.
  static constexpr uint32_t kAskAheadMin = 16;
  static constexpr uint64_t kStockBytesMax = 64 * 1024;
  static constexpr uint64_t kSurplusBytesMax = 8 * kStockBytesMax;  // in a stock, after an abort
  static constexpr uint64_t kAskAgainUs = 100'000;
  static constexpr uint64_t kWaitUs = 5;
  static constexpr int kWaitsMax = 20'000;
  static_assert(kBlocksMax <= kReservedBlocksMax && kStockBytesMax >= kKeptBlockBytesMax);

  struct Stock {
    NodeId node;
    uint32_t unit_bytes;
    uint32_t node_incarnation = 0;  // a node that was started again forgets what it handed out
    std::vector<GlobalAddress> blocks = {};
    uint32_t ask_for = kBlocksMin;  // more each time: a worker that writes little keeps little
    uint64_t ask_again_us = 0;
    bool asking = false;  // a coroutine does; the others wait for it
  };
  Stock& stock_of(NodeId node, uint32_t unit_bytes);
  Status reserve(NodeId node, uint32_t unit_bytes, uint32_t count, std::vector<GlobalAddress>& got,
                 VerbCounters& counters);
  static uint32_t most_of(uint32_t unit_bytes);
  void give_back_beyond(bool all, VerbCounters& counters);
  bool may_ask(const Stock& stock) const;
  void ask(Stock& stock, VerbCounters& counters);
  void ask_ahead(Stock& stock);
  void fetch(NodeId node, uint32_t unit_bytes, uint32_t count, VerbCounters& counters);
  void wait_for_asker(NodeId node, uint32_t unit_bytes);

  Worker& worker_;
  const Topology topology_;
  StorageClient& storage_;
  StorageService* own_ = nullptr;
  std::vector<Stock> stocks_;
};

}  // namespace rdmacc
