#include "engine/txn/driver/block_pool.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {

// What is left of a stock from before its node was started again stays with the node until this
// worker has gone: the owner words name it.
BlockPool::Stock& BlockPool::stock_of(NodeId node, uint32_t unit_bytes) {
  CHECK(node < topology_.nodes && unit_bytes > sizeof(OverflowHeader));
  const auto found = std::find_if(stocks_.begin(), stocks_.end(), [&](const Stock& stock) {
    return stock.node == node && stock.unit_bytes == unit_bytes;
  });
  Stock& stock = found != stocks_.end() ? *found : stocks_.emplace_back(Stock{node, unit_bytes});
  const uint32_t incarnation = worker_.endpoint().incarnation_of(topology_.worker_of(node));
  if (stock.node_incarnation != incarnation) stock.blocks.clear();
  stock.node_incarnation = incarnation;
  return stock;
}

// Stocks may move while a coroutine waits: they are looked up again behind whatever yields.
BlockPool::Taken BlockPool::take(NodeId node, uint64_t bytes, VerbCounters& counters) {
  if (bytes > kKeptBlockBytesMax) return Taken{};
  const uint32_t unit_bytes = overflow_unit_bytes(bytes);
  Stock* stock = &stock_of(node, unit_bytes);
  if (stock->blocks.empty()) {
    if (stock->asking) wait_for_asker(node, unit_bytes);
    if (stock_of(node, unit_bytes).blocks.empty()) ask(node, unit_bytes, counters);
    stock = &stock_of(node, unit_bytes);
    if (stock->blocks.empty()) return Taken{};
  }
  const Taken taken{stock->blocks.back(), unit_bytes, stock->node_incarnation};
  stock->blocks.pop_back();
  return taken;
}

void BlockPool::put_back(const Taken& taken) {
  CHECK(!taken.block.null() && taken.unit_bytes > 0);
  Stock& stock = stock_of(taken.block.node(), taken.unit_bytes);
  if (stock.node_incarnation == taken.node_incarnation) stock.blocks.push_back(taken.block);
}

void BlockPool::wait_for_asker(NodeId node, uint32_t unit_bytes) {
  for (int i = 0; i < kWaitsMax; ++i) {
    const Stock& stock = stock_of(node, unit_bytes);
    if (!stock.asking || !stock.blocks.empty()) return;
    worker_.scheduler().sleep_for(kWaitUs);
  }
}

void BlockPool::ask(NodeId node, uint32_t unit_bytes, VerbCounters& counters) {
  Stock& before = stock_of(node, unit_bytes);
  if (before.asking || worker_.endpoint().now_us() < before.ask_again_us) return;
  before.asking = true;
  std::vector<GlobalAddress> got;
  const uint32_t count = before.ask_for;
  const uint32_t incarnation = before.node_incarnation;
  const Status status = reserve(node, unit_bytes, count, got, counters);
  Stock& stock = stock_of(node, unit_bytes);
  stock.asking = false;
  if (!status.ok()) stock.ask_again_us = worker_.endpoint().now_us() + kAskAgainUs;
  // A node that gives fewer is short of memory.
  const auto most =
      static_cast<uint32_t>(std::min<uint64_t>(kStockBytesMax / unit_bytes, kBlocksMax));
  stock.ask_for = std::min(got.size() < count ? kBlocksMin : 2 * count, std::max(most, 1u));
  if (stock.node_incarnation != incarnation) return;
  stock.blocks.insert(stock.blocks.end(), got.begin(), got.end());
}

Status BlockPool::reserve(NodeId node, uint32_t unit_bytes, uint32_t count,
                          std::vector<GlobalAddress>& got, VerbCounters& counters) {
  const auto bytes = static_cast<uint32_t>(unit_bytes - sizeof(OverflowHeader));
  if (own_ == nullptr) return storage_.reserve_blocks(node, bytes, count, got, counters);
  std::vector<uint64_t> blocks;
  const Status status = own_->reserve_blocks(worker_.id(), bytes, count, blocks);
  for (const uint64_t block : blocks) got.push_back(GlobalAddress::make(node, block));
  return status;
}

void BlockPool::give_back(VerbCounters& counters) {
  std::vector<StorageClient::FreeRequest> freed;
  for (Stock& known : stocks_) {
    Stock& stock = stock_of(known.node, known.unit_bytes);
    for (const GlobalAddress block : stock.blocks) freed.push_back({block, FreeKind::kOverflow});
    stock.blocks.clear();
    stock.ask_for = kBlocksMin;
  }
  if (freed.empty()) return;
  // Those of a node that is away are freed when this worker has gone.
  static_cast<void>(storage_.free(freed, 0, counters));
}

}  // namespace rdmacc
