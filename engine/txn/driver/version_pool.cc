#include "engine/txn/driver/version_pool.h"

#include <algorithm>

namespace rdmacc {

VersionPool::Stock& VersionPool::stock_of(NodeId node, uint64_t bytes) {
  for (Stock& stock : stocks_) {
    if (stock.node == node && stock.bytes == bytes) return stock;
  }
  return stocks_.emplace_back(Stock{node, bytes});
}

// Stocks may move while a coroutine waits: they are looked up again behind whatever yields.
GlobalAddress VersionPool::take(NodeId node, uint32_t record_size, uint32_t history,
                                VerbCounters& counters) {
  const uint64_t bytes = versions_bytes(record_size, history);
  if (stock_of(node, bytes).asking) wait_for_asker(node, bytes);
  if (stock_of(node, bytes).blocks.empty()) ask(node, bytes, counters);
  Stock& stock = stock_of(node, bytes);
  if (stock.blocks.empty()) return GlobalAddress{};
  const GlobalAddress block = stock.blocks.back();
  stock.blocks.pop_back();
  return block;
}

void VersionPool::wait_for_asker(NodeId node, uint64_t bytes) {
  for (int i = 0; i < kWaitsMax; ++i) {
    const Stock& stock = stock_of(node, bytes);
    if (!stock.asking || !stock.blocks.empty()) return;
    worker_.scheduler().sleep_for(kWaitUs);
  }
}

void VersionPool::ask(NodeId node, uint64_t bytes, VerbCounters& counters) {
  Stock& before = stock_of(node, bytes);
  if (before.asking || worker_.endpoint().now_us() < before.ask_again_us) return;
  before.asking = true;
  std::vector<GlobalAddress> got;
  const uint32_t count = before.ask_for;
  const Status status = reserve(node, bytes, count, got, counters);
  Stock& stock = stock_of(node, bytes);
  stock.asking = false;
  if (!status.ok()) stock.ask_again_us = worker_.endpoint().now_us() + kAskAgainUs;
  // A node that gives fewer is short of memory.
  stock.ask_for = got.size() < count ? kBlocksMin : std::min(2 * count, kBlocksMax);
  stock.blocks.insert(stock.blocks.end(), got.begin(), got.end());
}

Status VersionPool::reserve(NodeId node, uint64_t bytes, uint32_t count,
                            std::vector<GlobalAddress>& got, VerbCounters& counters) {
  if (own_ == nullptr) {
    return storage_.reserve_version_blocks(node, static_cast<uint32_t>(bytes), count, got,
                                           counters);
  }
  std::vector<uint64_t> blocks;
  const Status status =
      own_->reserve_version_blocks(worker_.id(), static_cast<uint32_t>(bytes), count, blocks);
  for (const uint64_t block : blocks) got.push_back(GlobalAddress::make(node, block));
  return status;
}

void VersionPool::give_back(VerbCounters& counters) {
  std::vector<StorageClient::FreeRequest> freed;
  for (Stock& stock : stocks_) {
    for (const GlobalAddress block : stock.blocks) freed.push_back({block, FreeKind::kOverflow});
    stock.blocks.clear();
    stock.ask_for = kBlocksMin;
  }
  if (freed.empty()) return;
  // Those of a node that is away are freed when this worker has gone.
  static_cast<void>(storage_.free(freed, 0, counters));
}

}  // namespace rdmacc
