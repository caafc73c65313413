#include "engine/txn/version_pool.h"

#include <algorithm>

namespace rdmacc {

VersionPool::Stock& VersionPool::stock_of(NodeId node, uint64_t bytes) {
  for (Stock& stock : stocks_) {
    if (stock.node == node && stock.bytes == bytes) return stock;
  }
  return stocks_.emplace_back(Stock{node, bytes});
}

GlobalAddress VersionPool::take(NodeId node, uint32_t record_size, uint32_t history,
                                VerbCounters& counters) {
  const uint64_t bytes = versions_bytes(record_size, history);
  const uint64_t now_us = worker_.endpoint().now_us();
  if (stock_of(node, bytes).blocks.empty()) {
    if (now_us < stock_of(node, bytes).ask_again_us) return GlobalAddress{};
    std::vector<GlobalAddress> got;
    const uint32_t count = stock_of(node, bytes).ask_for;
    const Status status =
        storage_.reserve_version_blocks(node, static_cast<uint32_t>(bytes), count, got, counters);
    // Others may have come while this one waited.
    Stock& stock = stock_of(node, bytes);
    if (!status.ok()) stock.ask_again_us = now_us + kAskAgainUs;
    stock.ask_for = std::min(2 * count, kBlocksMax);
    stock.blocks.insert(stock.blocks.end(), got.begin(), got.end());
  }
  Stock& stock = stock_of(node, bytes);
  if (stock.blocks.empty()) return GlobalAddress{};
  const GlobalAddress block = stock.blocks.back();
  stock.blocks.pop_back();
  return block;
}

}  // namespace rdmacc
