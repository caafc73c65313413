#pragma once
#include <vector>

#include "engine/storage/storage_client.h"

namespace rdmacc {

// Blocks for old versions (engine/storage/tuple.h) that a worker keeps in advance, so that the
// first write over a row is verbs alone. One per worker, its thread alone.
class VersionPool {
 public:
  VersionPool(Worker& worker, StorageClient& storage) : worker_(worker), storage_(storage) {}

  // A block for `history` versions; asks the node for some when there is none, yielding. Null: the
  // node has no memory now, or is away. Then the row loses its old versions.
  GlobalAddress take(NodeId node, uint32_t record_size, uint32_t history, VerbCounters& counters);

 private:
  static constexpr uint32_t kBlocksMin = 16, kBlocksMax = 256;
  static constexpr uint64_t kAskAgainUs = 100'000;

  struct Stock {
    NodeId node;
    uint64_t bytes;
    std::vector<GlobalAddress> blocks = {};
    uint32_t ask_for = kBlocksMin;  // more each time: a worker that writes little keeps little
    uint64_t ask_again_us = 0;
  };
  Stock& stock_of(NodeId node, uint64_t bytes);

  Worker& worker_;
  StorageClient& storage_;
  std::vector<Stock> stocks_;
};

}  // namespace rdmacc
