#include "rdma/coroutine/scheduler.h"

#include <algorithm>
#include <boost/coroutine2/coroutine.hpp>
#include <utility>

#include "rdma/coroutine/coroutine_stack.h"
#include "rdma/coroutine/fiber_switch.h"
#include "rdma/coroutine/spin_budget.h"

namespace rdmacc {
namespace {

using Resumer = boost::coroutines2::coroutine<void>::push_type;
using Yielder = boost::coroutines2::coroutine<void>::pull_type;

}  // namespace

struct Scheduler::Impl {
  // One coroutine object. It outlives its tasks: when one has ended it waits among the idle ones
  // for the next, so that spawn() costs neither a stack nor a context creation.
  struct Coroutine {
    Impl* owner = nullptr;
    Scheduler::Task task;
    std::unique_ptr<Resumer> body;
    Yielder* yielder = nullptr;
    Coroutine* next_ready = nullptr;
    bool busy = false;  // has a task
    uint64_t* metered_ns = nullptr;
    uint64_t runs_since_ns = 0;  // while it is metered
    StackBounds stack;
    FiberSwitch fiber;
  };

  struct Timer {
    uint64_t deadline_us;
    uint64_t sequence;  // ties in the order they were set
    Coroutine* coroutine;
    std::unique_ptr<std::function<void()>> callback;

    // std::push_heap keeps the largest on top: the earliest is the largest.
    bool operator<(const Timer& other) const {
      return deadline_us != other.deadline_us ? deadline_us > other.deadline_us
                                              : sequence > other.sequence;
    }
  };

  Impl(Endpoint& its_endpoint, size_t& its_ready, uint64_t& its_progress, bool& its_stays,
       Options its_options)
      : endpoint(its_endpoint),
        options(its_options),
        ready(its_ready),
        progress(its_progress),
        stays(its_stays) {}

  void make_ready(Coroutine* coroutine);
  Coroutine* take_ready();
  bool take_alone();
  void resume(Coroutine* coroutine);
  void suspend();
  void meter_run(Coroutine& coroutine) const;
  void set_timer(Timer timer);
  bool run_due_timers(uint64_t now_us);
  void start_body(Coroutine* coroutine);
  void body_loop(Coroutine* coroutine, Yielder& yielder);
  static void on_completion_done(Completion* completion);

  Endpoint& endpoint;
  const Options options;
  std::vector<std::unique_ptr<Coroutine>> all;
  std::vector<Coroutine*> idle;
  Coroutine* first_ready = nullptr;
  Coroutine* last_ready = nullptr;
  size_t& ready;  // how many
  uint64_t& progress;
  bool& stays;
  Coroutine* alone = nullptr;  // the only one that may run; nullptr: all may
  Coroutine* current = nullptr;
  std::vector<Timer> timers;  // heap
  uint64_t timer_sequence = 0;
  uint64_t step_us = 0;  // when the latest step began
  std::vector<std::function<void()>> after_step;
  FiberSwitch own_stack;
  bool stepping = false;
  bool unwinding = false;
};

void Scheduler::Impl::make_ready(Coroutine* coroutine) {
  if (unwinding) return;  // destructors of unwound coroutines may complete what others await
  CHECK(coroutine->busy && coroutine->next_ready == nullptr && coroutine != last_ready);
  if (last_ready != nullptr) {
    last_ready->next_ready = coroutine;
  } else {
    first_ready = coroutine;
  }
  last_ready = coroutine;
  // Made ready from outside a step (spawned, or completed by another worker's code): nothing
  // else would end this worker's sleep.
  if (++ready == 1 && !stepping) endpoint.wake();
}

Scheduler::Impl::Coroutine* Scheduler::Impl::take_ready() {
  Coroutine* coroutine = first_ready;
  first_ready = coroutine->next_ready;
  if (first_ready == nullptr) last_ready = nullptr;
  coroutine->next_ready = nullptr;
  --ready;
  return coroutine;
}

// Takes the one that may run alone out of the ready ones, wherever it stands among them; false
// when it is not ready yet.
bool Scheduler::Impl::take_alone() {
  Coroutine* before = nullptr;
  Coroutine* at = first_ready;
  for (; at != nullptr && at != alone; at = at->next_ready) before = at;
  if (at == nullptr) return false;
  (before != nullptr ? before->next_ready : first_ready) = at->next_ready;
  if (last_ready == at) last_ready = before;
  at->next_ready = nullptr;
  --ready;
  return true;
}

// What a coroutine runs on its own stack. It never returns: the scheduler's destructor unwinds
// it. Exceptions (Boost's forced unwind, or what a library threw in a task) pass through.
void Scheduler::Impl::body_loop(Coroutine* coroutine, Yielder& yielder) {
  coroutine->yielder = &yielder;
  coroutine->fiber.arrive(&own_stack);
  try {
    for (;;) {
      coroutine->task();
      coroutine->task = nullptr;
      coroutine->busy = false;
      coroutine->metered_ns = nullptr;
      stays = false;
      idle.push_back(coroutine);
      suspend();
    }
  } catch (...) {
    if (unwinding) coroutine->fiber.arrive(&own_stack);
    coroutine->fiber.leave_for_good(own_stack);
    throw;
  }
}

void Scheduler::Impl::start_body(Coroutine* coroutine) {
  coroutine->body = std::make_unique<Resumer>(
      PooledStack(options.stack_bytes, &coroutine->stack),
      [this, coroutine](Yielder& yielder) { body_loop(coroutine, yielder); });
  coroutine->fiber.set_stack(coroutine->stack.bottom, coroutine->stack.bytes);
}

void Scheduler::Impl::resume(Coroutine* coroutine) {
  // Restores the scheduler's state also when the task let an exception out.
  struct Arrival {
    Impl& impl;
    Coroutine& coroutine;
    ~Arrival() {
      impl.own_stack.arrive(nullptr);
      impl.current = nullptr;
      impl.stays = false;
      if (*coroutine.body) return;
      coroutine.body.reset();  // ended by an exception: a new one next time
      coroutine.task = nullptr;
      coroutine.busy = false;
      coroutine.metered_ns = nullptr;
      impl.idle.push_back(&coroutine);
    }
  };
  CHECK(current == nullptr && coroutine->busy);
  if (coroutine->body == nullptr) start_body(coroutine);
  current = coroutine;
  own_stack.leave(coroutine->fiber);
  const Arrival arrival{*this, *coroutine};
  (*coroutine->body)();
}

// Back to the scheduler's stack; returns when the coroutine is resumed.
void Scheduler::Impl::suspend() {
  Coroutine* coroutine = current;
  CHECK(coroutine != nullptr);
  const bool stayed = std::exchange(stays, false);
  if (coroutine->metered_ns != nullptr) [[unlikely]]
    meter_run(*coroutine);
  coroutine->fiber.leave(own_stack);
  (*coroutine->yielder)();
  coroutine->fiber.arrive(&own_stack);
  if (coroutine->metered_ns != nullptr) [[unlikely]]
    coroutine->runs_since_ns = endpoint.now_ns();
  stays = stayed;
}

void Scheduler::Impl::meter_run(Coroutine& coroutine) const {
  *coroutine.metered_ns += endpoint.now_ns() - coroutine.runs_since_ns;
}

void Scheduler::Impl::set_timer(Timer timer) {
  timer.sequence = ++timer_sequence;
  timers.push_back(std::move(timer));
  std::push_heap(timers.begin(), timers.end());
}

bool Scheduler::Impl::run_due_timers(uint64_t now_us) {
  if (timers.empty() || timers.front().deadline_us > now_us) return false;
  bool any = false;
  // Timers that callbacks set for now run in the next step, so that the loop ends.
  const uint64_t last_sequence = timer_sequence;
  while (!timers.empty() && timers.front().deadline_us <= now_us &&
         timers.front().sequence <= last_sequence) {
    std::pop_heap(timers.begin(), timers.end());
    const Timer timer = std::move(timers.back());
    timers.pop_back();
    any = true;
    if (timer.coroutine != nullptr) {
      make_ready(timer.coroutine);
    } else {
      (*timer.callback)();
    }
  }
  return any;
}

void Scheduler::Impl::on_completion_done(Completion* completion) {
  auto* coroutine = static_cast<Coroutine*>(completion->waiter);
  completion->waiter = nullptr;
  completion->on_done = nullptr;
  if (!completion->failed) coroutine->owner->progress++;
  coroutine->owner->make_ready(coroutine);
}

Scheduler::Scheduler(Endpoint& endpoint) : Scheduler(endpoint, Options()) {}

Scheduler::Scheduler(Endpoint& endpoint, Options options)
    : endpoint_(endpoint),
      port_(endpoint.port()),
      mapped_(endpoint.mapped()),
      savings_(options.savings),
      impl_(std::make_unique<Impl>(endpoint, ready_, progress_, stays_, options)) {
  CHECK((mapped_ != nullptr) == (port_ == Endpoint::Port::kMapped));
  CHECK(options.coroutines_max > 0 && options.stack_bytes >= 16 * 1024);
}

Scheduler::~Scheduler() { unwind(); }

void Scheduler::unwind() {
  CHECK(impl_->current == nullptr && !impl_->stepping);
  impl_->unwinding = true;
  impl_->first_ready = impl_->last_ready = nullptr;
  impl_->ready = 0;
  impl_->alone = nullptr;
  impl_->timers.clear();
  for (const auto& coroutine : impl_->all) {
    coroutine->next_ready = nullptr;
    if (coroutine->body != nullptr && coroutine->yielder != nullptr) {
      impl_->own_stack.leave(coroutine->fiber);
      coroutine->body.reset();  // throws forced_unwind on the coroutine's stack
      impl_->own_stack.arrive(nullptr);
    }
    coroutine->task = nullptr;
  }
  impl_->all.clear();
  impl_->idle.clear();
  impl_->unwinding = false;
}

bool Scheduler::spawn(Task task) {
  CHECK(task != nullptr);
  Impl& impl = *impl_;
  if (impl.unwinding) return false;
  if (impl.idle.empty()) {
    if (impl.all.size() >= impl.options.coroutines_max) return false;
    impl.all.push_back(std::make_unique<Impl::Coroutine>());
    impl.all.back()->owner = &impl;
    impl.idle.push_back(impl.all.back().get());
  }
  Impl::Coroutine* coroutine = impl.idle.back();
  impl.idle.pop_back();
  coroutine->task = std::move(task);
  coroutine->busy = true;
  impl.make_ready(coroutine);
  return true;
}

bool Scheduler::step() {
  Impl& impl = *impl_;
  CHECK(!impl.stepping && impl.current == nullptr);
  struct Stepping {
    bool& flag;
    explicit Stepping(bool& its_flag) : flag(its_flag) { flag = true; }
    ~Stepping() { flag = false; }
  };
  const Stepping stepping(impl.stepping);
  impl.step_us = endpoint_.now_us();
  bool any = endpoint_.poll();
  any |= impl.run_due_timers(impl.step_us);
  if (impl.alone != nullptr && impl.take_alone()) impl.resume(std::exchange(impl.alone, nullptr));
  // Only those ready now: what they make ready, or yield themselves, waits for the next step.
  const size_t runnable = impl.ready;
  for (size_t i = 0; i < runnable && impl.alone == nullptr; ++i) impl.resume(impl.take_ready());
  for (const auto& hook : impl.after_step) hook();
  return any || runnable > 0;
}

uint64_t Scheduler::next_timer_us() const {
  return impl_->timers.empty() ? UINT64_MAX : impl_->timers.front().deadline_us;
}

bool Scheduler::quiet() const { return impl_->ready == 0; }

size_t Scheduler::busy_coroutines() const { return impl_->all.size() - impl_->idle.size(); }

bool Scheduler::stepping() const { return impl_->stepping; }

void Scheduler::run_until(const std::function<bool()>& done, uint32_t spin_us) {
  SpinBudget budget(spin_us);
  uint64_t idle_since_us = 0, spin_until_us = 0;  // 0: it is not idle
  while (!done()) {
    const bool any = step();
    if (any && idle_since_us != 0) {
      budget.found(impl_->step_us - idle_since_us);
      idle_since_us = 0;
    }
    if (!quiet()) continue;
    // What spins or sleeps looks first: no step of its own is needed to see that there is nothing.
    const uint64_t now_us = any ? endpoint_.now_us() : impl_->step_us;
    if (idle_since_us == 0) {
      idle_since_us = now_us;
      spin_until_us = now_us + budget.begin();
    }
    if (now_us < spin_until_us) {
      endpoint_.spin(std::min(spin_until_us, next_timer_us()));
    } else {
      if (spin_until_us > idle_since_us) budget.found_nothing();
      endpoint_.wait(next_timer_us());
      idle_since_us = 0;
    }
  }
}

uint64_t Scheduler::recent_us() { return impl_->stepping ? impl_->step_us : endpoint_.now_us(); }

void Scheduler::add_after_step(std::function<void()> hook) {
  impl_->after_step.push_back(std::move(hook));
}

void Scheduler::call_at(uint64_t deadline_us, std::function<void()> callback) {
  if (impl_->unwinding) return;
  impl_->set_timer(Impl::Timer{deadline_us, 0, nullptr,
                               std::make_unique<std::function<void()>>(std::move(callback))});
  if (!impl_->stepping) endpoint_.wake();
}

bool Scheduler::in_coroutine() const { return impl_->current != nullptr; }

void Scheduler::yield() {
  CHECK(in_coroutine());
  progress_++;
  impl_->make_ready(impl_->current);
  impl_->suspend();
}

void Scheduler::meter(uint64_t* ns) {
  CHECK(in_coroutine());
  Impl::Coroutine& coroutine = *impl_->current;
  if (coroutine.metered_ns != nullptr) impl_->meter_run(coroutine);
  coroutine.metered_ns = ns;
  if (ns != nullptr) coroutine.runs_since_ns = endpoint_.now_ns();
}

void Scheduler::sleep_until(uint64_t deadline_us) {
  CHECK(in_coroutine());
  impl_->set_timer(Impl::Timer{deadline_us, 0, impl_->current, nullptr});
  impl_->suspend();
}

void Scheduler::await(Completion& completion) {
  CHECK(in_coroutine());
  if (completion.outstanding == 0) return;
  CHECK(completion.waiter == nullptr);
  completion.waiter = impl_->current;
  completion.on_done = &Impl::on_completion_done;
  impl_->suspend();
  CHECK(completion.outstanding == 0);
}

void Scheduler::await_alone(Completion& completion) {
  CHECK(in_coroutine() && impl_->alone == nullptr);
  if (completion.outstanding == 0) return;
  impl_->alone = impl_->current;
  await(completion);
}

}  // namespace rdmacc
