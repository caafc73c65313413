#include "engine/storage/owner/reserved_slots.h"

#include <algorithm>

namespace rdmacc {

// Looks at all of them, which may be hundreds of thousands, and lets other coroutines run in
// between: what they add is left for the next time, what they have taken out is passed over. `look`
// does not yield; true: the slot is to be forgotten. Called outside of a coroutine, it looks at all
// of them at once.
template <typename Look>
void ReservedSlots::look_at_all(Look&& look) {
  constexpr ptrdiff_t kSlotsPerTurn = 32;
  const bool yields = worker_.scheduler().in_coroutine();
  const uint64_t end = next_batch_;
  uint64_t number = 0, behind = 0;  // of the batch, slots up to there have been looked at
  while (true) {
    const auto at = batches_.lower_bound(number);
    if (at == batches_.end() || at->first >= end) return;
    if (at->first != number) behind = 0;
    number = at->first;
    std::vector<Slot>& slots = at->second.slots;
    const auto first = std::upper_bound(slots.begin(), slots.end(), Slot{behind, 0});
    const auto last = first + std::min(kSlotsPerTurn, slots.end() - first);
    for (auto slot = first; slot != last; ++slot) region_.prefetch_header(slot->offset);
    if (last != slots.end()) {
      behind = std::prev(last)->offset;
    } else {
      ++number;
      behind = 0;
    }
    const auto kept = std::remove_if(
        first, last, [&](const Slot& slot) { return look(std::as_const(at->second), slot); });
    count_ -= static_cast<size_t>(last - kept);
    slots.erase(kept, last);
    if (slots.empty()) batches_.erase(at);
    if (yields) worker_.scheduler().yield();
  }
}

void ReservedSlots::add(std::span<const uint64_t> slots, uint64_t tag, uint32_t incarnation) {
  CHECK(locked_exclusively(tag) && !slots.empty());
  Batch& batch = batches_[next_batch_++];
  batch.tag = tag;
  batch.incarnation = incarnation;
  batch.slots.reserve(slots.size());
  for (const uint64_t slot : slots) {
    CHECK(arena_.in_use(PageKind::kSlot, slot));
    batch.slots.push_back({slot, region_.load(slot + kOffsetOfIdentity)});
  }
  std::sort(batch.slots.begin(), batch.slots.end());
  count_ += slots.size();
}

// Slots come in the order of their places, so that those with one word come together, mostly.
bool ReservedSlots::adopt(uint64_t slot, uint64_t word) {
  const auto worker = static_cast<WorkerId>(word);
  const Header header = region_.header(slot);
  // One that was allocated for an insert knows its key.
  if ((header.flags & kFlagLive) != 0 || header.key_hash != 0) return false;
  if (worker == kOrderWorker) return false;
  const uint32_t incarnation = worker_.endpoint().incarnation_of(worker);
  if (incarnation == 0) return false;
  Batch* last = batches_.empty() ? nullptr : &batches_.rbegin()->second;
  const bool fits = last != nullptr && last->tag == word && last->incarnation == incarnation &&
                    last->slots.back().offset < slot;
  if (fits) {
    last->slots.push_back({slot, region_.load(slot + kOffsetOfIdentity)});
    ++count_;
  } else {
    add({&slot, 1}, word, incarnation);
    batches_.rbegin()->second.adopted = true;
  }
  return true;
}

// An older batch may still name a slot that was a row's since.
const ReservedSlots::Batch* ReservedSlots::batch_of(uint64_t slot, const Slot** found) const {
  for (auto batch_at = batches_.rbegin(); batch_at != batches_.rend(); ++batch_at) {
    const Batch& batch = batch_at->second;
    if (slot < batch.slots.front().offset || slot > batch.slots.back().offset) continue;
    const auto at = std::lower_bound(batch.slots.begin(), batch.slots.end(), Slot{slot, 0});
    if (at->offset != slot) continue;
    *found = &*at;
    return &batch;
  }
  return nullptr;
}

// A transaction that has it may give it back, until it is a row's.
bool ReservedSlots::as_added(const Slot& slot) const {
  return arena_.in_use(PageKind::kSlot, slot.offset) &&
         region_.load(slot.offset + kOffsetOfIdentity) == slot.identity &&
         (region_.load(slot.offset + kOffsetOfLength) >> 32 & kFlagLive) == 0;
}

bool ReservedSlots::lists(const Batch& batch, const Slot& slot) const {
  return as_added(slot) && region_.lock_of(slot.offset) == batch.tag;
}

bool ReservedSlots::lists(uint64_t slot) const {
  const Slot* found = nullptr;
  const Batch* batch = batch_of(slot, &found);
  return batch != nullptr && lists(*batch, *found);
}

bool ReservedSlots::held_by_worker(const Batch& batch, const Slot& slot) const {
  const uint64_t lock = region_.lock_of(slot.offset);
  return as_added(slot) && locked_exclusively(lock) &&
         static_cast<WorkerId>(lock) == static_cast<WorkerId>(batch.tag);
}

bool ReservedSlots::held_by_worker(uint64_t slot) const {
  const Slot* found = nullptr;
  const Batch* batch = batch_of(slot, &found);
  return batch != nullptr && held_by_worker(*batch, *found);
}

bool ReservedSlots::of_gone_table(const Slot& slot) const {
  return directory_.live(region_.table_of(slot.offset)) == nullptr;
}

uint64_t ReservedSlots::unused() {
  uint64_t unused = 0;
  look_at_all([&](const Batch& batch, const Slot& slot) {
    unused += lists(batch, slot) && !of_gone_table(slot) ? 1 : 0;
    return false;
  });
  return unused;
}

size_t ReservedSlots::take_back(OfTables of) {
  std::vector<Kept> wanted;
  look_at_all([&](const Batch& batch, const Slot& slot) {
    const bool takes = wanted.size() < kTakenAtOnce && !batch.adopted && lists(batch, slot);
    if (takes && (of == OfTables::kAll || of_gone_table(slot))) {
      wanted.push_back({slot.offset, batch.tag});
    }
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
  look_at_all([&](const Batch& batch, const Slot& slot) {
    if (!as_added(slot)) return true;
    if (!batch.adopted && of_gone_table(slot) && lists(batch, slot)) {
      gone.push_back({slot.offset, batch.tag});
      return false;
    }
    const auto worker = static_cast<WorkerId>(batch.tag);
    const uint32_t now = worker_.endpoint().incarnation_of(worker);
    if (now != 0 && now == batch.incarnation) return false;
    if (held_by_worker(batch, slot)) {
      const uint64_t lock = region_.lock_of(slot.offset);
      orphans_.add({PageKind::kSlot, slot.offset, lock, batch.incarnation});
    }
    return true;
  });
  for (size_t first = 0; first < gone.size(); first += kTakenAtOnce) {
    take(std::span(gone).subspan(first, std::min(kTakenAtOnce, gone.size() - first)));
  }
}

}  // namespace rdmacc
