#include "engine/storage/owner/reserved_slots.h"

#include <algorithm>

namespace rdmacc {

// As look_at_all() of rdma/coroutine/long_look.h looks at a map: some at a time, so that other
// coroutines run in between. Here they are fetched together, too. `look` does not yield; true: the
// slot is to be forgotten.
template <typename Look>
void ReservedSlots::look_at_all(Look&& look) {
  constexpr ptrdiff_t kSlotsPerTurn = 32;
  if (batches_.empty()) return;
  const bool yields = worker_.scheduler().in_coroutine();
  const uint64_t last_tag = batches_.rbegin()->first;
  uint64_t tag = 0, behind = 0;  // of this batch, slots up to there have been looked at
  ptrdiff_t of_turn = 0;
  while (true) {
    const auto at = batches_.lower_bound(tag);
    if (at == batches_.end() || at->first > last_tag) return;
    if (at->first != tag) behind = 0;
    tag = at->first;
    std::vector<Slot>& slots = at->second.slots;
    const auto first = std::upper_bound(slots.begin(), slots.end(), Slot{behind, 0});
    const auto last = first + std::min(kSlotsPerTurn - of_turn, slots.end() - first);
    for (auto slot = first; slot != last; ++slot) region_.prefetch_header(slot->offset);
    const bool whole = last == slots.end();
    if (!whole) behind = std::prev(last)->offset;
    of_turn += last - first;
    const Batch& batch = at->second;
    const auto kept =
        std::remove_if(first, last, [&](const Slot& slot) { return look(tag, batch, slot); });
    count_ -= static_cast<size_t>(last - kept);
    slots.erase(kept, last);
    if (slots.empty()) batches_.erase(at);
    if (whole) {
      ++tag;
      behind = 0;
    }
    if (of_turn < kSlotsPerTurn) continue;
    of_turn = 0;
    if (yields) worker_.scheduler().yield();
  }
}

void ReservedSlots::add(std::span<const uint64_t> slots, uint64_t tag, uint32_t incarnation) {
  CHECK(locked_exclusively(tag) && !slots.empty());
  Batch& batch = batches_[tag];
  if (batch.slots.empty()) batch.incarnation = incarnation;
  for (const uint64_t slot : slots) {
    CHECK(arena_.in_use(PageKind::kSlot, slot));
    batch.slots.push_back({slot, region_.load(slot + kOffsetOfIdentity)});
    ++count_;
  }
  std::sort(batch.slots.begin(), batch.slots.end());
}

// Those with one word are a batch. They come in the order of their places, mostly.
bool ReservedSlots::adopt(uint64_t slot, uint64_t word) {
  const auto worker = static_cast<WorkerId>(word);
  const Header header = region_.header(slot);
  // One that was allocated for an insert knows its key.
  if ((header.flags & kFlagLive) != 0 || header.key_hash != 0) return false;
  if (worker == kOrderWorker) return false;
  const uint32_t incarnation = worker_.endpoint().incarnation_of(worker);
  if (incarnation == 0) return false;
  Batch& batch = batches_[word];
  CHECK(batch.slots.empty() || batch.adopted);
  if (batch.slots.empty()) batch.incarnation = incarnation;
  batch.adopted = true;
  const Slot adopted{slot, region_.load(slot + kOffsetOfIdentity)};
  batch.slots.insert(std::upper_bound(batch.slots.begin(), batch.slots.end(), adopted), adopted);
  ++count_;
  return true;
}

const ReservedSlots::Slot* ReservedSlots::find_in(const Batch& batch, uint64_t slot) {
  const auto at = std::lower_bound(batch.slots.begin(), batch.slots.end(), Slot{slot, 0});
  return at != batch.slots.end() && at->offset == slot ? &*at : nullptr;
}

// A transaction that has it may give it back, until it is a row's.
bool ReservedSlots::as_added(const Slot& slot) const {
  return arena_.in_use(PageKind::kSlot, slot.offset) &&
         region_.load(slot.offset + kOffsetOfIdentity) == slot.identity &&
         (region_.load(slot.offset + kOffsetOfLength) >> 32 & kFlagLive) == 0;
}

// By the tag in its lock word: an older batch may still name a slot that was a row's since.
bool ReservedSlots::lists(uint64_t slot) const {
  const auto batch = batches_.find(region_.lock_of(slot));
  if (batch == batches_.end()) return false;
  const Slot* found = find_in(batch->second, slot);
  return found != nullptr && as_added(*found);
}

bool ReservedSlots::held_by_worker(uint64_t slot) const {
  if (lists(slot)) return true;
  const uint64_t lock = region_.lock_of(slot);  // a transaction's, perhaps
  if (!locked_exclusively(lock)) return false;
  return std::any_of(batches_.begin(), batches_.end(), [&](const auto& each) {
    if (static_cast<WorkerId>(each.first) != static_cast<WorkerId>(lock)) return false;
    const Slot* found = find_in(each.second, slot);
    return found != nullptr && as_added(*found);
  });
}

bool ReservedSlots::of_gone_table(const Slot& slot) const {
  return directory_.live(region_.table_of(slot.offset)) == nullptr;
}

uint64_t ReservedSlots::unused() {
  uint64_t unused = 0;
  look_at_all([&](uint64_t tag, const Batch&, const Slot& slot) {
    const bool kept = as_added(slot) && region_.lock_of(slot.offset) == tag;
    unused += kept && !of_gone_table(slot) ? 1 : 0;
    return false;
  });
  return unused;
}

size_t ReservedSlots::take_back(OfTables of) {
  std::vector<Kept> wanted;
  look_at_all([&](uint64_t tag, const Batch& batch, const Slot& slot) {
    const bool may_take = wanted.size() < kTakenAtOnce && !batch.adopted;
    if (!may_take || !as_added(slot) || region_.lock_of(slot.offset) != tag) return false;
    if (of == OfTables::kAll || of_gone_table(slot)) wanted.push_back({slot.offset, tag});
    return false;
  });
  return take(wanted);
}

// Those that no transaction of their workers has taken meanwhile.
size_t ReservedSlots::take(std::span<const Kept> kept) {
  CHECK(kept.size() <= kTakenAtOnce);
  if (kept.empty()) return 0;
  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(kept.size());
  if (seen == nullptr) return 0;  // the next look
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  for (size_t i = 0; i < kept.size(); ++i) {
    batch.compare_swap(region_.address(kept[i].slot + kOffsetOfLock), kept[i].tag, 0, &seen[i]);
  }
  if (!batch.execute().ok()) return 0;
  size_t taken = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (seen[i] != kept[i].tag) continue;
    index_.retire_slot(kept[i].slot);  // and is forgotten by the next look
    ++taken;
  }
  return taken;
}

bool ReservedSlots::pending() const {
  return !batches_.empty() && worker_.endpoint().now_us() >= next_look_us_;
}

void ReservedSlots::sweep() {
  next_look_us_ = worker_.endpoint().now_us() + kLookEveryUs;
  std::vector<Kept> gone;  // of tables that are
  look_at_all([&](uint64_t tag, const Batch& batch, const Slot& slot) {
    if (!as_added(slot)) return true;
    const uint64_t lock = region_.lock_of(slot.offset);
    if (lock == tag && !batch.adopted && of_gone_table(slot)) {
      gone.push_back({slot.offset, tag});
      return false;
    }
    const auto worker = static_cast<WorkerId>(tag);
    const uint32_t now = worker_.endpoint().incarnation_of(worker);
    if (now != 0 && now == batch.incarnation) return false;
    if (locked_exclusively(lock) && static_cast<WorkerId>(lock) == worker) {
      orphans_.add({PageKind::kSlot, slot.offset, lock, batch.incarnation});
    }
    return true;
  });
  for (size_t first = 0; first < gone.size(); first += kTakenAtOnce) {
    take(std::span(gone).subspan(first, std::min(kTakenAtOnce, gone.size() - first)));
  }
}

}  // namespace rdmacc
