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
    stock = &stock_of(node, unit_bytes);
    if (stock->blocks.empty()) ask(*stock, counters);
    stock = &stock_of(node, unit_bytes);
    if (stock->blocks.empty()) return Taken{};
  }
  const Taken taken{stock->blocks.back(), unit_bytes, stock->node_incarnation};
  stock->blocks.pop_back();
  if (stock->blocks.size() <= stock->ask_for / 2) ask_ahead(*stock);
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

bool BlockPool::may_ask(const Stock& stock) const {
  return !stock.asking && worker_.endpoint().now_us() >= stock.ask_again_us;
}

void BlockPool::ask(Stock& stock, VerbCounters& counters) {
  if (!may_ask(stock)) return;
  stock.asking = true;
  fetch(stock.node, stock.unit_bytes, stock.ask_for, counters);
}

// The node's own thread has them at once.
void BlockPool::ask_ahead(Stock& stock) {
  if (own_ != nullptr || stock.ask_for < kAskAheadMin || !may_ask(stock)) return;
  const auto count = static_cast<uint32_t>(stock.ask_for - stock.blocks.size());
  stock.asking =
      worker_.scheduler().spawn([this, node = stock.node, unit_bytes = stock.unit_bytes, count] {
        fetch(node, unit_bytes, count, worker_.counters());
      });
}

void BlockPool::fetch(NodeId node, uint32_t unit_bytes, uint32_t count, VerbCounters& counters) {
  CHECK(count > 0);
  std::vector<GlobalAddress> got;
  const uint32_t incarnation = stock_of(node, unit_bytes).node_incarnation;
  const Status status = reserve(node, unit_bytes, count, got, counters);
  Stock& stock = stock_of(node, unit_bytes);
  stock.asking = false;
  if (!status.ok()) stock.ask_again_us = worker_.endpoint().now_us() + kAskAgainUs;
  // A node that gives fewer is short of memory.
  stock.ask_for =
      std::min(got.size() < count ? kBlocksMin : 2 * stock.ask_for, most_of(unit_bytes));
  if (stock.node_incarnation != incarnation) return;
  stock.blocks.insert(stock.blocks.end(), got.begin(), got.end());
}

void BlockPool::end_asking(uint64_t us_max) {
  constexpr uint64_t kPauseUs = 20;
  const uint64_t deadline_us = worker_.endpoint().now_us() + us_max;
  const auto asks = [](const Stock& stock) { return stock.asking; };
  while (std::any_of(stocks_.begin(), stocks_.end(), asks) &&
         worker_.endpoint().now_us() < deadline_us) {
    worker_.scheduler().sleep_for(kPauseUs);
  }
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

uint32_t BlockPool::most_of(uint32_t unit_bytes) {
  const uint64_t most = std::min<uint64_t>(kStockBytesMax / unit_bytes, kBlocksMax);
  return std::max(static_cast<uint32_t>(most), 1u);
}

void BlockPool::give_back_beyond(bool all, VerbCounters& counters) {
  CHECK(all || own_ == nullptr);  // a node's own thread runs no transactions
  std::vector<StorageClient::FreeRequest> freed;
  for (Stock& known : stocks_) {
    Stock& stock = stock_of(known.node, known.unit_bytes);
    if (!all && stock.blocks.size() * stock.unit_bytes <= kSurplusBytesMax) continue;
    const size_t kept = all ? 0 : most_of(stock.unit_bytes);
    while (stock.blocks.size() > kept) {
      freed.push_back({stock.blocks.back(), FreeKind::kOverflow});
      stock.blocks.pop_back();
    }
    if (all) stock.ask_for = kBlocksMin;
  }
  if (freed.empty()) return;
  // Those of a node that is away are freed when this worker has gone.
  static_cast<void>(storage_.free(freed, 0, counters));
}

}  // namespace rdmacc
