// A worker's end of the tcp fabric while nothing is to be done: spinning, sleeping.
#include <algorithm>
#include <cerrno>

#include "rdma/tcp/tcp_endpoint.h"

namespace rdmacc {
namespace {

uint64_t local_us() { return monotonic_now_ns() / 1000; }

}  // namespace

void TcpEndpoint::spin(uint64_t deadline_us) {
  flush_all();
  if (!own_chains_.empty() || !delayed_.empty()) return;
  do {
    if (self_.inbox->wake_requested.load(std::memory_order_seq_cst)) {
      self_.inbox->wake_requested.store(false, std::memory_order_seq_cst);
      return;
    }
    event_count_ = epoll_wait(epoll_.get(), events_.data(), kEventsPerPoll, 0);
    if (event_count_ > 0 || local_us() >= next_tick_us_) return;
  } while (now_us() < deadline_us);
}

void TcpEndpoint::wait(uint64_t deadline_us) {
  const uint64_t now = now_us();
  flush_all();
  if (!own_chains_.empty() || deadline_us <= now) return;
  const uint64_t local = local_us();
  uint64_t us = std::min<uint64_t>(deadline_us - now, cluster_->options.wait_us_max);
  us = std::min(us, next_tick_us_ > local ? next_tick_us_ - local : 0);
  if (!delayed_.empty()) us = std::min(us, delays_->held_us());
  self_.inbox->sleeping.store(true, std::memory_order_seq_cst);
  if (us > 0 && !self_.inbox->wake_requested.load(std::memory_order_seq_cst)) {
    timespec timeout;
    timeout.tv_sec = static_cast<time_t>(us / 1'000'000);
    timeout.tv_nsec = static_cast<long>(us % 1'000'000) * 1000;
    event_count_ = epoll_pwait2(epoll_.get(), events_.data(), kEventsPerPoll, &timeout, nullptr);
    if (event_count_ < 0 && errno == ENOSYS) {
      event_count_ =
          epoll_wait(epoll_.get(), events_.data(), kEventsPerPoll, static_cast<int>(us / 1000) + 1);
    }
  }
  self_.inbox->sleeping.store(false, std::memory_order_seq_cst);
  self_.inbox->wake_requested.store(false, std::memory_order_seq_cst);
}

}  // namespace rdmacc
