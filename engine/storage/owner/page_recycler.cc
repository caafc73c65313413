#include "engine/storage/owner/page_recycler.h"

#include <algorithm>

namespace rdmacc {

bool PageRecycler::worth_it() const {
  const uint64_t empty = arena_.empty_pages();
  if (empty == 0 || out_of_eras()) return false;
  if (!begun_) return true;
  const bool scarce = arena_.pages_left() < kScarce * empty;
  const bool few_eras = reclaimer_.eras_left() < kErasMax / 2;
  const uint64_t pause_us = scarce && !few_eras ? std::min(kPauseUsScarce, pause_us_) : pause_us_;
  return worker_.endpoint().now_us() >= begun_us_ + pause_us;
}

bool PageRecycler::refused_due() const {
  return arena_.has_refused() && worker_.endpoint().now_us() >= refused_look_us_;
}

bool PageRecycler::pending() const {
  return arena_.withdrawn_pages() > 0 || worth_it() || refused_due();
}

void PageRecycler::begin() {
  arena_.withdraw_empty_pages();
  span_.emplace(observer_, StructureChange::kRecycle, kNoTable);
  begun_us_ = worker_.endpoint().now_us();
  begun_ = true;
  // Here first: a request of a transaction that knows the new era must find it.
  const uint64_t word = offsetof(Superblock, address_era);
  region_.store(word, region_.load(word) + 1);
  epoch_ = reclaimer_.raise_era();
  if (epoch_ != 0) return;
  arena_.restore_withdrawn();
  span_.reset();
}

void PageRecycler::advance() {
  if (refused_due()) {
    arena_.look_at_refused();
    refused_look_us_ = worker_.endpoint().now_us() + pause_us_;
  }
  if (arena_.withdrawn_pages() == 0) {
    span_.reset();  // all of them were taken back
    if (worth_it()) begin();
    return;
  }
  reclaimer_.advance();
  if (reclaimer_.epoch() < epoch_ + 2) return;
  const uint64_t before = arena_.pages_left();
  arena_.recycle_withdrawn();
  if (arena_.pages_left() > before) span_->happened();
  span_.reset();
}

}  // namespace rdmacc
