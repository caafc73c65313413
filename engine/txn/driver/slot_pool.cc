#include "engine/txn/driver/slot_pool.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "rdma/base/check.h"

namespace rdmacc {

const SlotPool::Stock* SlotPool::find(NodeId node, TableId table) const {
  const auto found = std::find_if(stocks_.begin(), stocks_.end(), [&](const Stock& stock) {
    return stock.table == table && stock.node == node;
  });
  return found == stocks_.end() ? nullptr : &*found;
}

SlotPool::Stock* SlotPool::find(NodeId node, TableId table) {
  return const_cast<Stock*>(std::as_const(*this).find(node, table));
}

SlotPool::Stock& SlotPool::stock_of(NodeId node, TableId table) {
  if (Stock* known = find(node, table)) return *known;
  if (stocks_.size() >= kStocksMax) make_room();
  return stocks_.emplace_back(Stock{node, table});
}

size_t SlotPool::kept(NodeId node, TableId table) const {
  const Stock* stock = find(node, table);
  return stock == nullptr ? 0 : stock->slots.size();
}

// What has not run low for longest goes: its table may be gone.
void SlotPool::make_room() {
  auto oldest = stocks_.end();
  for (auto at = stocks_.begin(); at != stocks_.end(); ++at) {
    if (at->refilling || at->taken > 0) continue;
    if (oldest == stocks_.end() || at->asked_us < oldest->asked_us) oldest = at;
  }
  if (oldest == stocks_.end()) return;
  std::vector<Taken> slots = std::move(oldest->slots);
  stocks_.erase(oldest);
  // When no coroutine is to be had, the nodes have them back once this worker has gone.
  static_cast<void>(spawn_free(slots));
}

// False: no coroutine is to be had, and `slots` are as they were.
bool SlotPool::spawn_free(std::vector<Taken>& slots) {
  if (slots.empty()) return true;
  auto moved = std::make_shared<std::vector<Taken>>(std::move(slots));
  if (worker_.scheduler().spawn([this, moved] { free(std::move(*moved)); })) return true;
  slots = std::move(*moved);
  return false;
}

std::vector<SlotPool::Taken> SlotPool::take_all() {
  std::vector<Taken> all = std::exchange(outdated_, {});
  for (Stock& stock : stocks_) {
    all.insert(all.end(), stock.slots.begin(), stock.slots.end());
    stock.slots.clear();
  }
  return all;
}

void SlotPool::renew() {
  std::vector<Taken> all = take_all();
  if (!spawn_free(all)) outdated_ = std::move(all);  // no coroutine is to be had: the next time
}

void SlotPool::free(std::vector<Taken> slots) {
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Taken& a, const Taken& b) { return a.tag < b.tag; });
  std::vector<StorageClient::FreeRequest> requests;
  for (size_t i = 0; i < slots.size(); ++i) {
    requests.push_back({slots[i].slot.slot, FreeKind::kReserved});
    if (i + 1 < slots.size() && slots[i + 1].tag == slots[i].tag) continue;
    static_cast<void>(storage_.free(requests, slots[i].tag, worker_.counters()));
    requests.clear();
  }
}

Status SlotPool::take(std::span<SlotRequest> requests, uint64_t ctts, Slots& taken,
                      VerbArena& arena, VerbCounters& counters) {
  CHECK(locked_exclusively(ctts));
  const size_t before = taken.size();
  boost::container::small_vector<SlotRequest*, 16> of;  // of what is taken
  MappedMemory* mapped = worker_.scheduler().mapped();
  for (SlotRequest& request : requests) {
    if (!request.want_slot) continue;
    Stock& stock = stock_of(request.node, request.table);
    ++stock.taken;
    if (stock.slots.empty()) continue;
    taken.push_back(stock.slots.back());
    stock.slots.pop_back();
    of.push_back(&request);
    if (mapped == nullptr) continue;
    mapped->prefetch_slot(taken.back().slot.slot);
    if (!stock.slots.empty()) mapped->prefetch_slot(stock.slots.back().slot.slot);
  }
  for (Stock& stock : stocks_) {
    if (stock.taken > 0) note_use(stock);
  }
  if (of.empty()) return Status();
  const std::span<Taken> fresh(taken.data() + before, of.size());
  auto* seen = arena.allocate_array<uint64_t>(fresh.size());
  if (seen == nullptr) {
    for (const Taken& each : fresh) keep(each);
    taken.resize(before);
    return out_of_registered_memory();
  }
  DoorbellBatch batch(worker_.scheduler(), counters);
  for (size_t i = 0; i < fresh.size(); ++i) {
    batch.compare_swap(fresh[i].slot.slot.plus(kOffsetOfLock), fresh[i].tag, ctts, &seen[i]);
  }
  const Status status = batch.execute();
  if (!status.ok()) {
    taken.resize(before);
    return status;
  }
  size_t got = 0;
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (seen[i] != fresh[i].tag) continue;  // its owner took it back, or has lost its memory
    SlotRequest& request = *of[i];
    request.slot = fresh[i].slot.slot;
    request.incarnation = fresh[i].slot.incarnation;
    request.wts = fresh[i].slot.wts;
    request.lease = fresh[i].slot.lease;
    fresh[got++] = fresh[i];
  }
  taken.resize(before + got);
  return Status();
}

Status SlotPool::put_back(Slots& taken, uint64_t ctts, VerbArena& arena, VerbCounters& counters) {
  if (taken.empty()) return Status();
  const Slots slots = std::exchange(taken, Slots());
  auto* seen = arena.allocate_array<uint64_t>(slots.size());
  if (seen == nullptr) {
    std::vector<StorageClient::FreeRequest> requests;
    for (const Taken& each : slots) requests.push_back({each.slot.slot, FreeKind::kSlot});
    return storage_.free(requests, ctts, counters);
  }
  DoorbellBatch batch(worker_.scheduler(), counters);
  for (size_t i = 0; i < slots.size(); ++i) {
    batch.compare_swap(slots[i].slot.slot.plus(kOffsetOfLock), ctts, slots[i].tag, &seen[i]);
  }
  const Status status = batch.execute();
  // After an error some may be kept in vain, which take() finds out.
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!status.ok() || seen[i] == ctts) keep(slots[i]);
  }
  return status;
}

void SlotPool::keep(const Taken& slot) {
  CHECK(locked_exclusively(slot.tag) && !slot.slot.slot.null());
  stock_of(slot.slot.node, slot.slot.table).slots.push_back(slot);
}

void SlotPool::note_use(Stock& stock) {
  const uint32_t taken = std::exchange(stock.taken, 0);
  const bool low = stock.slots.size() <= stock.wanted / 2;
  if (!low || stock.refilling || closed_ || kept_max_ == 0) return;
  const uint64_t now_us = worker_.endpoint().now_us();
  const uint64_t since_us = stock.asked_us == 0 ? UINT64_MAX : now_us - stock.asked_us;
  if (since_us < kSoonUs) {
    stock.wanted = std::min(std::max(2 * std::max(stock.wanted, taken), kKeptMin), kept_max_);
  } else if (since_us > kLateUs) {
    stock.wanted = stock.wanted <= kKeptMin ? 0 : stock.wanted / 2;
  }
  stock.asked_us = now_us;
  if (stock.slots.size() < stock.wanted) refill(stock);
}

void SlotPool::refill(Stock& stock) {
  CHECK(!stock.refilling && stock.slots.size() < stock.wanted && stock.wanted <= kept_max_);
  const auto count = static_cast<uint32_t>(stock.wanted - stock.slots.size());
  stock.refilling =
      worker_.scheduler().spawn([this, node = stock.node, table = stock.table, count] {
        std::vector<SlotRequest> got;
        const uint64_t tag = clock_.next();
        const Status status =
            storage_.reserve_slots(node, table, count, tag, got, worker_.counters());
        refilled(node, table, status, tag, got);
        CHECK(on_their_way_ > 0);
        --on_their_way_;
      });
  if (stock.refilling) ++on_their_way_;
}

void SlotPool::refilled(NodeId node, TableId table, const Status& status, uint64_t tag,
                        std::span<const SlotRequest> got) {
  if (Stock* stock = find(node, table)) {
    stock->refilling = false;
    if (!status.ok()) stock->wanted = 0;
  }
  if (!closed_) {
    for (const SlotRequest& slot : got) keep({tag, slot});
    return;
  }
  std::vector<Taken> late;
  for (const SlotRequest& slot : got) late.push_back({tag, slot});
  free(std::move(late));
}

void SlotPool::give_back(uint64_t us_max) {
  constexpr uint64_t kPauseUs = 20;
  closed_ = true;
  free(take_all());
  const uint64_t deadline_us = worker_.endpoint().now_us() + us_max;
  while (on_their_way_ > 0 && worker_.endpoint().now_us() < deadline_us) {
    worker_.scheduler().sleep_for(kPauseUs);
  }
  closed_ = false;
}

}  // namespace rdmacc
