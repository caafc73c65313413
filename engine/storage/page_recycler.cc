#include "engine/storage/page_recycler.h"

namespace rdmacc {

bool PageRecycler::worth_it() const {
  const uint64_t empty = arena_.empty_pages();
  if (empty == 0 || out_of_eras()) return false;
  if (!begun_) return true;
  const bool scarce = arena_.pages_left() < kScarce * empty;
  const bool few_eras = reclaimer_.eras_left() < kErasMax / 2;
  const uint64_t pause_us = scarce && !few_eras ? kPauseUsScarce : kPauseUs;
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
  begun_us_ = worker_.endpoint().now_us();
  begun_ = true;
  // Here first: a request of a transaction that knows the new era must find it.
  const uint64_t word = offsetof(Superblock, address_era);
  region_.store(word, region_.load(word) + 1);
  epoch_ = reclaimer_.raise_era();
  if (epoch_ == 0) arena_.restore_withdrawn();
}

void PageRecycler::advance() {
  if (refused_due()) {
    arena_.look_at_refused();
    refused_look_us_ = worker_.endpoint().now_us() + kPauseUs;
  }
  if (arena_.withdrawn_pages() == 0) {
    if (worth_it()) begin();
    return;
  }
  reclaimer_.advance();
  if (reclaimer_.epoch() < epoch_ + 2) return;
  arena_.recycle_withdrawn();
}

}  // namespace rdmacc
