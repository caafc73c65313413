#include "engine/storage/owner/reserved_slots.h"

#include <algorithm>

#include "rdma/coroutine/long_look.h"

namespace rdmacc {

void ReservedSlots::add(uint64_t slot, uint64_t tag, uint32_t incarnation) {
  CHECK(locked_exclusively(tag) && arena_.in_use(PageKind::kSlot, slot));
  slots_[slot] = {tag, region_.load(slot + kOffsetOfIdentity), incarnation};
}

bool ReservedSlots::adopt(uint64_t slot, uint64_t word) {
  const auto worker = static_cast<WorkerId>(word);
  const Header header = region_.header(slot);
  // One that was allocated for an insert knows its key.
  if ((header.flags & kFlagLive) != 0 || header.key_hash != 0) return false;
  if (worker == kOrderWorker) return false;
  const uint32_t incarnation = worker_.endpoint().incarnation_of(worker);
  if (incarnation == 0) return false;
  add(slot, word, incarnation);
  slots_[slot].adopted = true;
  return true;
}

// A transaction that has it may give it back, until it is a row's.
bool ReservedSlots::as_added(uint64_t slot, const Reserved& reserved) const {
  return arena_.in_use(PageKind::kSlot, slot) &&
         region_.load(slot + kOffsetOfIdentity) == reserved.identity &&
         (region_.header(slot).flags & kFlagLive) == 0;
}

bool ReservedSlots::lists(uint64_t slot) const {
  const auto found = slots_.find(slot);
  return found != slots_.end() && as_added(slot, found->second) &&
         region_.lock_of(slot) == found->second.tag;
}

bool ReservedSlots::held_by_worker(uint64_t slot, const Reserved& reserved) const {
  const uint64_t lock = region_.lock_of(slot);
  return as_added(slot, reserved) && locked_exclusively(lock) &&
         static_cast<WorkerId>(lock) == static_cast<WorkerId>(reserved.tag);
}

bool ReservedSlots::held_by_worker(uint64_t slot) const {
  const auto found = slots_.find(slot);
  return found != slots_.end() && held_by_worker(slot, found->second);
}

uint64_t ReservedSlots::unused() {
  uint64_t unused = 0;
  look_at_all(worker_.scheduler(), slots_, [&](uint64_t slot, const Reserved&) {
    unused += lists(slot) && directory_.live(region_.table_of(slot)) != nullptr ? 1 : 0;
    return false;
  });
  return unused;
}

size_t ReservedSlots::take_back(OfTables of) {
  constexpr size_t kTakenPerBatch = 256;
  std::vector<std::pair<uint64_t, uint64_t>> gone;  // slot, tag
  look_at_all(worker_.scheduler(), slots_, [&](uint64_t slot, const Reserved& reserved) {
    const bool wanted = of == OfTables::kAll || directory_.live(region_.table_of(slot)) == nullptr;
    if (gone.size() < kTakenPerBatch && wanted && !reserved.adopted && lists(slot)) {
      gone.emplace_back(slot, reserved.tag);
    }
    return false;
  });
  if (gone.empty()) return 0;
  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(gone.size());
  if (seen == nullptr) return 0;  // the next look
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  for (size_t i = 0; i < gone.size(); ++i) {
    batch.compare_swap(region_.address(gone[i].first + kOffsetOfLock), gone[i].second, 0, &seen[i]);
  }
  if (!batch.execute().ok()) return 0;
  size_t taken = 0;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (seen[i] != gone[i].second) continue;
    index_.retire_slot(gone[i].first);
    slots_.erase(gone[i].first);
    ++taken;
  }
  return taken;
}

void ReservedSlots::hand_over_of_dead() {
  look_at_all(worker_.scheduler(), slots_, [&](uint64_t slot, const Reserved& reserved) {
    if (!as_added(slot, reserved)) return true;
    const auto worker = static_cast<WorkerId>(reserved.tag);
    const uint32_t now = worker_.endpoint().incarnation_of(worker);
    if (now != 0 && now == reserved.incarnation) return false;
    if (held_by_worker(slot, reserved)) {
      orphans_.add({PageKind::kSlot, slot, region_.lock_of(slot), reserved.incarnation});
    }
    return true;
  });
}

bool ReservedSlots::pending() const {
  return !slots_.empty() && worker_.endpoint().now_us() >= next_look_us_;
}

void ReservedSlots::sweep() {
  next_look_us_ = worker_.endpoint().now_us() + kLookEveryUs;
  while (take_back(OfTables::kGone) > 0) {
  }
  hand_over_of_dead();
}

}  // namespace rdmacc
