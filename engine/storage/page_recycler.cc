#include "engine/storage/page_recycler.h"

namespace rdmacc {

bool PageRecycler::worth_it() const {
  const uint64_t empty = arena_.empty_pages();
  if (empty == 0) return false;
  if (!begun_) return true;
  const bool scarce = arena_.pages_left() < kScarce * empty;
  const uint64_t pause_us = scarce ? kPauseUsScarce : kPauseUs;
  return worker_.endpoint().now_us() >= begun_us_ + pause_us;
}

bool PageRecycler::pending() const { return !withdrawn_.empty() || worth_it(); }

void PageRecycler::begin() {
  withdrawn_ = arena_.withdraw_empty_pages();
  begun_us_ = worker_.endpoint().now_us();
  begun_ = true;
  // Here first: a request of a transaction that knows the new era must find it.
  const uint64_t word = offsetof(Superblock, address_era);
  region_.store(word, region_.load(word) + 1);
  epoch_ = reclaimer_.raise_era();
  if (epoch_ != 0) return;
  for (const uint64_t page : withdrawn_) arena_.restore(page);
  withdrawn_.clear();
}

void PageRecycler::advance() {
  if (withdrawn_.empty()) {
    if (worth_it()) begin();
    return;
  }
  reclaimer_.advance();
  if (reclaimer_.epoch() < epoch_ + 2) return;
  for (const uint64_t page : withdrawn_) arena_.recycle(page);
  withdrawn_.clear();
}

}  // namespace rdmacc
