#include "engine/storage/reserved_slots.h"

#include <algorithm>

namespace rdmacc {

void ReservedSlots::add(uint64_t slot, uint64_t tag) {
  CHECK(locked_exclusively(tag));
  const uint32_t incarnation = worker_.endpoint().incarnation_of(static_cast<WorkerId>(tag));
  slots_[slot] = {tag, region_.load(slot + kOffsetOfIdentity), incarnation};
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

uint64_t ReservedSlots::unused() const {
  return static_cast<uint64_t>(std::count_if(slots_.begin(), slots_.end(), [&](const auto& each) {
    return lists(each.first) && directory_.live(region_.table_of(each.first)) != nullptr;
  }));
}

void ReservedSlots::take_back() {
  constexpr size_t kTakenPerBatch = 256;
  std::vector<std::pair<uint64_t, uint64_t>> gone;  // slot, tag
  for (const auto& [slot, reserved] : slots_) {
    if (gone.size() == kTakenPerBatch) break;
    if (lists(slot) && directory_.live(region_.table_of(slot)) == nullptr) {
      gone.emplace_back(slot, reserved.tag);
    }
  }
  if (gone.empty()) return;
  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(gone.size());
  if (seen == nullptr) return;  // the next look
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  for (size_t i = 0; i < gone.size(); ++i) {
    batch.compare_swap(region_.address(gone[i].first + kOffsetOfLock), gone[i].second, 0, &seen[i]);
  }
  if (!batch.execute().ok()) return;
  for (size_t i = 0; i < gone.size(); ++i) {
    if (seen[i] == gone[i].second) index_.retire_slot(gone[i].first);
  }
}

void ReservedSlots::hand_over_of_dead() {
  std::erase_if(slots_, [&](const auto& each) {
    const auto& [slot, reserved] = each;
    if (!as_added(slot, reserved)) return true;
    const auto worker = static_cast<WorkerId>(reserved.tag);
    const uint32_t now = worker_.endpoint().incarnation_of(worker);
    if (now != 0 && now == reserved.incarnation) return false;
    if (region_.lock_of(slot) == reserved.tag) {
      orphans_.add({PageKind::kSlot, slot, reserved.tag});
    }
    return true;
  });
}

bool ReservedSlots::pending() const {
  return !slots_.empty() && worker_.endpoint().now_us() >= next_look_us_;
}

void ReservedSlots::sweep() {
  next_look_us_ = worker_.endpoint().now_us() + kLookEveryUs;
  take_back();
  hand_over_of_dead();
}

}  // namespace rdmacc
