#include <algorithm>

#include "engine/coordinator_impl.h"

// A worker's part of the engine, and the pump that runs it for a caller without a coroutine.

namespace rdmacc {

Coordinator::Coordinator(std::unique_ptr<Endpoint> endpoint, const Topology& topology,
                         const EngineOptions& options, Scheduler::Options scheduler_options)
    : impl_(std::make_unique<Impl>(std::move(endpoint), topology, options, scheduler_options)) {}

// Transactions that are still under way refer to the state, so they end before it does.
Coordinator::~Coordinator() { impl_->worker.scheduler().unwind(); }

Worker& Coordinator::worker() { return impl_->worker; }
void Coordinator::finish_background(uint64_t us_max) {
  CHECK(impl_->worker.scheduler().in_coroutine());
  const uint64_t until_us = impl_->worker.endpoint().now_us() + us_max;
  impl_->state.frees.finish(us_max);
  const auto left_us = [&] {
    return until_us - std::min(until_us, impl_->worker.endpoint().now_us());
  };
  impl_->state.slots.give_back(left_us());
  impl_->state.engine.blocks.end_asking(left_us());
  impl_->state.engine.blocks.give_back(worker().counters());
}
bool Coordinator::left_to_resolution() const { return impl_->state.left_to_resolution; }
const Topology& Coordinator::topology() const { return impl_->state.engine.topology; }
WorkerStats& Coordinator::stats() { return impl_->state.stats; }
void Coordinator::set_observer(TxnObserver* observer) { impl_->state.observer = observer; }
void Coordinator::set_history(HistoryWriter* history) { impl_->state.history = history; }

// ---- SessionPump

namespace {
constexpr int kStepsAfterCommandMax = 64;
}  // namespace

void SessionPump::start(std::function<Status()> command) {
  CHECK(!busy_);
  CHECK(command != nullptr);
  busy_ = true;
  command_ = std::move(command);
  const bool spawned = coordinator_.worker().scheduler().spawn([this] {
    const std::function<Status()> begun = std::exchange(command_, nullptr);
    result_ = begun();
    busy_ = false;
  });
  if (!spawned) {
    busy_ = false;
    command_ = nullptr;
    result_ = Status(Code::kNoSpace, "no coroutine is free");
  }
}

bool SessionPump::resume() {
  if (!busy_) return true;
  Scheduler& scheduler = coordinator_.worker().scheduler();
  scheduler.step();
  // What the command posted last and does not wait for (it left the gate, it freed slots) has to
  // take effect now: the caller may not come back for hours.
  for (int i = 0; !busy_ && i < kStepsAfterCommandMax && !scheduler.settled(); i++) {
    if (!scheduler.step()) break;
  }
  return !busy_;
}

void SessionPump::go_on() {
  CHECK(!busy_);
  coordinator_.worker().scheduler().step();
}

void SessionPump::wait(uint64_t us_max) {
  Scheduler& scheduler = coordinator_.worker().scheduler();
  if (!scheduler.quiet()) return;  // it has only made room for others
  const uint64_t now = coordinator_.worker().endpoint().now_us();
  coordinator_.worker().endpoint().wait(std::min(now + us_max, scheduler.next_timer_us()));
}

uint64_t SessionPump::progress() const { return coordinator_.worker().scheduler().progress(); }

}  // namespace rdmacc
