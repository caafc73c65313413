#include "engine/storage/owner/version_blocks.h"

#include <algorithm>

#include "rdma/coroutine/long_look.h"

namespace rdmacc {

void VersionBlocks::reserve(uint64_t block, WorkerId worker) {
  reserved_[block] = {worker, worker_.endpoint().incarnation_of(worker), region_.load(block)};
}

uint64_t VersionBlocks::named_by(uint64_t slot) const {
  if (!arena_.in_use(PageKind::kSlot, slot)) return 0;
  const DirectoryEntry* table = directory_.live(region_.table_of(slot));
  if (table == nullptr || table->history == 0) return 0;
  const uint64_t block = region_.load(slot + versions_reference_place(table->record_size));
  return arena_.in_use(PageKind::kOverflow, block) ? block : 0;
}

// What the block says of its slot is a hint until the slot says so, too.
bool VersionBlocks::named(uint64_t block) const {
  return named_by(region_.load(block + kVersionsSlotPlace)) == block;
}

// A row may have had it and lost it since, and it may be another transaction's by now.
bool VersionBlocks::still_handed_out(uint64_t block, const Reserved& by) const {
  return arena_.in_use(PageKind::kOverflow, block) && region_.load(block) == by.tag;
}

void VersionBlocks::note_slot(uint64_t slot) {
  const uint64_t block = named_by(slot);
  if (block != 0) attached_.push_back({slot, block});
}

uint64_t VersionBlocks::reserved_bytes() {
  uint64_t bytes = 0;
  look_at_all(worker_.scheduler(), reserved_, [&](uint64_t block, const Reserved& by) {
    if (still_handed_out(block, by) && !named(block)) bytes += arena_.unit_bytes(block);
    return false;
  });
  return bytes;
}

bool VersionBlocks::pending() const {
  return count() > 0 && worker_.endpoint().now_us() >= next_look_us_;
}

void VersionBlocks::look_at_reserved() {
  look_at_all(worker_.scheduler(), reserved_,
              [&](uint64_t block, Reserved& by) { return is_done(block, by); });
}

// It is in advance no more.
bool VersionBlocks::is_done(uint64_t block, Reserved& by) {
  if (!still_handed_out(block, by)) return true;
  if (named(block)) {
    attached_.push_back({region_.load(block + kVersionsSlotPlace), block});
    return true;
  }
  if (!by.worker_gone.begun()) {
    const uint32_t now = worker_.endpoint().incarnation_of(by.worker);
    if (now == 0 || now != by.incarnation) by.worker_gone.begin(reclaimer_);
    return false;
  }
  if (!by.worker_gone.over(reclaimer_)) return false;
  arena_.retire(block);
  return true;
}

// A transaction that begins after the clock was read draws a larger ctts.
void VersionBlocks::raise_horizon() {
  if (!until_horizon_.begun()) {
    next_horizon_us_ = worker_.endpoint().now_us();
    until_horizon_.begin(reclaimer_);
  } else if (until_horizon_.over(reclaimer_)) {
    horizon_us_ = next_horizon_us_;
    until_horizon_ = {};
  }
}

VersionBlocks::Fate VersionBlocks::look_at(const Attached& attached) {
  if (named_by(attached.slot) != attached.block) return Fate::kGone;
  const uint64_t wts = region_.load(attached.slot + kOffsetOfWts);
  const uint64_t written_us = wts >> 16;
  const uint64_t kept_us = scarce() ? 0 : kept_us_;
  if (written_us >= horizon_us_ || worker_.endpoint().now_us() < written_us + kept_us) {
    return Fate::kStays;
  }
  return index_.drop_versions(attached.slot, attached.block, wts) ? Fate::kDropped : Fate::kStays;
}

void VersionBlocks::sweep() {
  reclaimer_.advance();
  look_at_reserved();
  raise_horizon();
  const size_t looks = std::min(attached_.size(), kLooksPerRound);
  size_t dropped = 0;
  for (size_t i = 0; i < looks && dropped < kDropsPerRound && !attached_.empty(); ++i) {
    const Attached attached = attached_.front();
    attached_.pop_front();
    const Fate fate = look_at(attached);
    if (fate == Fate::kStays) attached_.push_back(attached);
    if (fate == Fate::kDropped) ++dropped;
    worker_.scheduler().count_round();
  }
  const uint64_t pause_us = dropped < kDropsPerRound ? std::min(kLookEveryUs, kept_us_) : 0;
  next_look_us_ = worker_.endpoint().now_us() + pause_us;
}

}  // namespace rdmacc
