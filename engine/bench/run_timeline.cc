#include "engine/bench/run_timeline.h"

#include <algorithm>

namespace rdmacc {

void SecondCounts::merge(const SecondCounts& other) {
  committed += other.committed;
  rolled_back += other.rolled_back;
  aborted += other.aborted;
  latency_ns.merge(other.latency_ns);
}

uint32_t RunTimeline::due(size_t second) const {
  const auto gone = std::count_if(left_.begin(), left_.end(),
                                  [second](uint32_t seconds) { return seconds <= second; });
  return coordinators_ - static_cast<uint32_t>(gone);
}

void RunTimeline::add(uint32_t second, const SecondCounts& counts) {
  const std::lock_guard lock(mutex_);
  CHECK(second >= closed_.size());  // each coordinator adds each second once
  const size_t place = second - closed_.size();
  if (open_.size() <= place) open_.resize(place + 1);
  CHECK(open_[place].added < coordinators_);
  ++open_[place].added;
  open_[place].counts.merge(counts);
  close();
}

void RunTimeline::leave(uint32_t seconds) {
  const std::lock_guard lock(mutex_);
  CHECK(left_.size() < coordinators_);
  left_.push_back(seconds);
  close();
}

void RunTimeline::close() {
  while (!open_.empty() && open_.front().added == due(closed_.size())) {
    const SecondCounts& all = open_.front().counts;
    const Histogram& ns = all.latency_ns;
    closed_.push_back({all.committed, all.rolled_back, all.aborted, ns.mean(), ns.percentile(50),
                       ns.percentile(99)});
    open_.erase(open_.begin());
  }
}

std::vector<RunSecond> RunTimeline::seconds() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace rdmacc
