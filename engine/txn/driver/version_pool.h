#pragma once
#include <vector>

#include "engine/storage/wire/storage_client.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// Blocks for old versions (engine/storage/layout/tuple.h) that a worker keeps in advance, so that
// the first write over a row is verbs alone. One per worker, its thread alone.
class VersionPool {
 public:
  VersionPool(Worker& worker, StorageClient& storage) : worker_(worker), storage_(storage) {}

  // For the thread that owns the node's memory itself: a request to itself might find no coroutine
  // that is free to serve it.
  void take_from(StorageService& own) { own_ = &own; }

  // A block for `history` versions; asks the node for some when there is none, yielding. Null: the
  // node has no memory now, or is away. Then the row loses its old versions.
  GlobalAddress take(NodeId node, uint32_t record_size, uint32_t history, VerbCounters& counters);

  // All that it keeps goes back to the nodes: when the worker ends, or memory is used up. Yields.
  void give_back(VerbCounters& counters);

 private:
  static constexpr uint32_t kBlocksMin = 16, kBlocksMax = 256;
  static constexpr uint64_t kAskAgainUs = 100'000;
  static constexpr uint64_t kWaitUs = 5;
  static constexpr int kWaitsMax = 20'000;

  struct Stock {
    NodeId node;
    uint64_t bytes;
    std::vector<GlobalAddress> blocks = {};
    uint32_t ask_for = kBlocksMin;  // more each time: a worker that writes little keeps little
    uint64_t ask_again_us = 0;
    bool asking = false;  // a coroutine does; the others wait for it
  };
  Stock& stock_of(NodeId node, uint64_t bytes);
  Status reserve(NodeId node, uint64_t bytes, uint32_t count, std::vector<GlobalAddress>& got,
                 VerbCounters& counters);
  void ask(NodeId node, uint64_t bytes, VerbCounters& counters);
  void wait_for_asker(NodeId node, uint64_t bytes);

  Worker& worker_;
  StorageClient& storage_;
  StorageService* own_ = nullptr;
  std::vector<Stock> stocks_;
};

}  // namespace rdmacc
