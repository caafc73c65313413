#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "rdma/coroutine/scheduler.h"
#include "rdma/fabric/fabric.h"
#include "rdma/sim/sim_choice.h"
#include "rdma/sim/sim_delay.h"

// The deterministic simulator: any number of nodes and coordinators in one thread, a virtual
// clock, and one seed that decides everything. Each verb of a chain is an event of its own; a
// READ or WRITE longer than a cache line tears: its lines are carried out in a random order with
// other events between them, and single words of a line too when `cpu_reads` says that a CPU
// carries them out (in the verb's WordOrder). Datagrams are delayed, lost, doubled, reordered.
// Workers die at any event; their region stays.

namespace rdmacc {

struct SimOptions {
  uint64_t seed = 1;
  uint32_t verb_ns_min = 500, verb_ns_max = 3'000;  // one way, to another node
  uint32_t self_ns_min = 20, self_ns_max = 400;     // a node's verbs to itself
  uint32_t datagram_ns_min = 800, datagram_ns_max = 8'000;
  uint32_t step_ns_max = 300;                         // what running a worker costs, at most
  uint32_t stall_percent = 1, stall_ns_max = 60'000;  // a long tail for any event
  uint32_t loss_percent = 0, duplicate_percent = 0;
  uint32_t clock_error_us = 0;  // by which a worker's bounds of the time may be off, either way
  bool tear = true;
  bool cpu_reads = true;
  // Rounds of verbs are carried out one verb at a time, as the mapped port does in place, with
  // other workers between any two (Endpoint::Port::kOneByOne).
  bool one_by_one = false;
  // Verbs to a node without a live thread fail, as they do over a wire; otherwise its region can
  // still be reached, as on shm. Verbs to a node that never joined always fail.
  bool dead_node_unreachable = false;
  SimDelays delays;  // beside all of these
};

class SimFabric : public Fabric {
 public:
  static std::unique_ptr<SimFabric> create(const Topology& topology, const SimOptions& options);

  // The scheduler that runs `worker`; called once its Worker object exists, and with nullptr
  // before that object goes.
  virtual void attach(WorkerId worker, Scheduler* scheduler) = 0;

  // Carries out events until `done`, or until `events_max` were carried out; false in that case
  // (a hang, or too small a bound). Also false if no event is left and `done` is still false.
  virtual bool run_until(const std::function<bool()>& done, uint64_t events_max) = 0;

  // Kills the worker now: verbs and datagrams of its that are in flight are carried out or
  // dropped by chance before departed() lists it. The owner drops its objects afterwards (from
  // outside any of its coroutines). Killing all threads of a node leaves its region as it is;
  // join_as_node() then starts it again with a new incarnation.
  virtual void kill(WorkerId worker) = 0;
  // The worker does nothing until then, as a process that is stopped; what it has posted goes on.
  virtual void hold(WorkerId worker, uint64_t until_ns) = 0;

  virtual uint64_t now_ns() const = 0;
  virtual uint64_t events() const = 0;
  virtual Random& random() = 0;
  // Called after every event, on the simulator's stack: for tests that act at event N.
  virtual void set_observer(std::function<void(uint64_t event)> observer) = 0;

  // From now on `chooser` decides what happens next, for good; run_until() counts choices and
  // returns false when it stops. Delays, losses and deaths are not among the choices. Every
  // worker's clock stands still at the present time, or where set_clock_us() puts it.
  virtual void set_chooser(SimChooser* chooser) = 0;
  virtual void set_clock_us(WorkerId worker, uint64_t us) = 0;
  virtual void set_rewriter(SimChainRewriter rewriter) = 0;
  virtual void set_delivery(SimDelivery delivery) = 0;
};

}  // namespace rdmacc
