#include "engine/txn/driver/admission.h"

#include <algorithm>
#include <utility>

#include "rdma/base/check.h"

namespace rdmacc {

struct Admission::Waiter {
  Completion over{.outstanding = 1};
  bool in_vain = false;
  void wake(bool its_in_vain) {
    if (over.outstanding == 0) return;
    in_vain = its_in_vain;
    over.finish_one();
  }
};

void Admission::Place::wake_all() {
  for (const std::shared_ptr<Waiter>& waiter : std::exchange(waiting_, {})) waiter->wake(false);
}

void Admission::begin(Place& place, uint64_t ctts) {
  CHECK(!place.is_linked() && ctts != 0);
  place.of_ = this;
  place.ctts_ = ctts;
  under_way_.push_back(place);
}

Admission::Place* Admission::find(uint64_t ctts) {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(),
                                  [ctts](const Place& place) { return place.ctts_ == ctts; });
  return found == under_way_.end() ? nullptr : &*found;
}

// Each waits for one at most, and none of them for itself so far: the chain has an end.
bool Admission::would_wait_for_itself(const Place& waiting, uint64_t ctts) {
  while (ctts != 0 && ctts != waiting.ctts_) {
    const Place* next = find(ctts);
    ctts = next == nullptr ? 0 : next->waits_for_;
  }
  return ctts != 0;
}

// The holder may be in no hurry, as a session's that waits for its user: the wait is bounded.
bool Admission::wait_for(uint64_t ctts) {
  Place* holder = find(ctts);
  if (holder == nullptr) return true;
  const auto waiter = std::make_shared<Waiter>();
  holder->waiting_.push_back(waiter);
  const uint64_t deadline_us = scheduler_.endpoint().now_us() + kWaitUsMax;
  scheduler_.call_at(deadline_us, [waiter] { waiter->wake(true); });
  scheduler_.await(waiter->over);
  return !waiter->in_vain;
}

bool Admission::Place::wait_for(uint64_t ctts) {
  CHECK(is_linked() && waits_for_ == 0);
  if (of_->would_wait_for_itself(*this, ctts)) return false;
  waits_for_ = ctts;
  const bool ended = of_->wait_for(ctts);
  waits_for_ = 0;
  return ended;
}

void Admission::note_end(bool lost) {
  lost_share_ += ((lost ? kAll : 0) - lost_share_) >> kAttemptsLog;
}

}  // namespace rdmacc
