#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "rdma/coroutine/verb_savings.h"
#include "rdma/fabric/fabric.h"

// The event loop of one worker thread and its coroutines (Boost.Coroutine2 on pooled stacks with
// guard pages). A transaction, an RPC handler and a maintenance job are each one coroutine; while
// verbs are in flight the coroutine yields and others run.
//
// Owned and used by one thread. Nothing may be half-updated across a yield, and no mutex held.
// In the simulator step() is called by the simulator, elsewhere by run_until() or by the glue of
// a PostgreSQL backend between its interrupt checks.

namespace rdmacc {

class Scheduler {
 public:
  using Task = std::function<void()>;
  struct Options {
    size_t stack_bytes = 256 * 1024;
    uint32_t coroutines_max = 1024;
    VerbSavings savings = {};
  };

  Scheduler(Endpoint& endpoint, Options options);
  explicit Scheduler(Endpoint& endpoint);
  ~Scheduler();  // unwind()
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Endpoint& endpoint() { return endpoint_; }
  Endpoint::Port port() const { return port_; }
  MappedMemory* mapped() const { return mapped_; }  // nullptr: not the mapped port
  const VerbSavings& savings() const { return savings_; }

  // Runs `task` on a coroutine of its own in a later step(); false when coroutines_max are busy.
  [[nodiscard]] bool spawn(Task task);

  // Polls the endpoint once, then runs every coroutine that is ready (each once), due timers and
  // the after-step hooks. True if anything happened.
  bool step();
  // When the next timer is due; UINT64_MAX when none is set.
  uint64_t next_timer_us() const;
  // Nothing is runnable now (coroutines may be suspended).
  bool quiet() const;
  // And no verb that was rung waits for a step.
  bool settled() const { return quiet() && endpoint_.all_carried_out(); }
  size_t busy_coroutines() const;
  // Grows whenever a coroutine goes on for another reason than a timer or a peer that failed: what
  // does not grow for long waits for something that may never come.
  uint64_t progress() const { return progress_; }
  // Steps and sleeps until `done` says so. Before it sleeps it spins, for spin_us at most
  // (spin_budget.h).
  void run_until(const std::function<bool()>& done, uint32_t spin_us = 50);

  // Called at the end of every step; RPC flushes its per-peer batches there.
  void add_after_step(std::function<void()> hook);
  // Calls `callback` once, on the scheduler's own stack, in the first step at or after then.
  void call_at(uint64_t deadline_us, std::function<void()> callback);
  // The clock as it was when the step under way began; outside of steps, as it is. For deadlines
  // that need not be kept to the microsecond.
  uint64_t recent_us();
  // True inside step(): its hooks are still to come.
  bool stepping() const;

  // Unwinds every suspended coroutine (destructors run, nothing is resumed) and forgets all
  // timers. For owners whose objects the coroutines refer to: call it before those go. A function
  // that may yield must not be noexcept, or the unwinding ends the process.
  void unwind();

  // ---- From within a coroutine of this scheduler.
  bool in_coroutine() const;
  void yield();  // behind everything that is ready now
  void sleep_until(uint64_t deadline_us);
  void sleep_for(uint64_t us) { sleep_until(endpoint_.now_us() + us); }
  void await(Completion& completion);  // until outstanding is zero
  // The same, and no other coroutine of this worker runs until then.
  void await_alone(Completion& completion);
  // Yields if another coroutine is ready to run.
  void yield_to_ready() {
    if (ready_ > 0 && !stays_) yield();
  }
  // A coroutine that never has to wait lets the endpoint be polled and timers fire now and then.
  void count_round() {
    if (++rounds_ < (stays_ ? kRoundsPerStay : kRoundsPerYield)) return;
    rounds_ = 0;
    yield();
  }
  // The two above do not yield in this coroutine from now on, until it has done kRoundsPerStay
  // rounds, takes this back or ends: others would only meet what it is about to give free. They get
  // their turn while it has to wait for something.
  void stay(bool stays) { stays_ = stays; }
  // Adds to `ns` how long this coroutine runs from now on, without the time that it is suspended,
  // by the endpoint's clock; until the next call, with nullptr for none. It stays alive until then.
  void meter(uint64_t* ns);

 private:
  static constexpr uint32_t kRoundsPerYield = 32, kRoundsPerStay = 512;

  struct Impl;
  Endpoint& endpoint_;
  const Endpoint::Port port_;
  MappedMemory* const mapped_;
  const VerbSavings savings_;
  size_t ready_ = 0;  // coroutines
  uint64_t progress_ = 0;
  uint32_t rounds_ = 0;
  bool stays_ = false;  // the coroutine that runs
  std::unique_ptr<Impl> impl_;
};

}  // namespace rdmacc
