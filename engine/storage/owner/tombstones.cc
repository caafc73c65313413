#include "engine/storage/owner/tombstones.h"

#include <algorithm>

namespace rdmacc {

void Tombstones::add(uint64_t slot) {
  if (queue_.size() >= kQueueMax || !arena_.in_use(PageKind::kSlot, slot)) return;
  const Header header = region_.header(slot);
  queue_.push_back({.slot = slot,
                    .identity = region_.load(slot + kOffsetOfIdentity),
                    .wts = header.wts,
                    .rts = header.rts,
                    .until_us = worker_.endpoint().now_us() + kLeftToReadersUs});
  pause_us_ = kPauseUsMin;
}

bool Tombstones::pending() const {
  return !queue_.empty() && worker_.endpoint().now_us() >= next_look_us_;
}

bool Tombstones::as_added(const Tombstone& tombstone) const {
  if (!arena_.in_use(PageKind::kSlot, tombstone.slot)) return false;
  const Header header = region_.header(tombstone.slot);
  return (header.flags & kFlagDeleted) != 0 && header.wts == tombstone.wts &&
         region_.load(tombstone.slot + kOffsetOfIdentity) == tombstone.identity;
}

Tombstones::Fate Tombstones::look_at(Tombstone& tombstone) {
  if (!as_added(tombstone)) return Fate::kGone;
  const uint64_t rts = region_.header(tombstone.slot).rts;
  if (rts != tombstone.rts && worker_.endpoint().now_us() < tombstone.until_us) {
    tombstone.rts = rts;
    tombstone.past = {};
    return Fate::kWaits;
  }
  // A transaction that begins after the clock was read draws a larger ctts.
  if (!tombstone.past.begun()) {
    if (worker_.endpoint().now_us() > tombstone.wts >> 16) tombstone.past.begin(reclaimer_);
    return Fate::kWaits;
  }
  if (!tombstone.past.over(reclaimer_)) return Fate::kWaits;
  return index_.unlink_tombstone(tombstone.slot, tombstone.wts, rts) ? Fate::kGone : Fate::kWaits;
}

void Tombstones::collect() {
  reclaimer_.advance();
  const size_t before = queue_.size();
  if (reclaimer_.epoch() != 0) {
    const size_t looks = std::min(before, kLooksPerRound);
    for (size_t i = 0; i < looks && !queue_.empty(); ++i) {
      Tombstone tombstone = queue_.front();
      queue_.pop_front();
      if (look_at(tombstone) == Fate::kWaits) queue_.push_back(tombstone);
      worker_.scheduler().count_round();
    }
  }
  // A transaction that stays open for hours holds the epoch: no use in looking all the time.
  pause_us_ = queue_.size() < before ? kPauseUsMin : std::min(2 * pause_us_, kPauseUsMax);
  next_look_us_ = worker_.endpoint().now_us() + pause_us_;
}

}  // namespace rdmacc
