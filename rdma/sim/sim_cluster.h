#pragma once
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rdma/sim/sim_choice.h"
#include "rdma/sim/sim_events.h"
#include "rdma/sim/sim_fabric.h"

// The state behind SimFabric and its endpoints: regions, worker slots, chains and datagrams in
// flight, the clock and the event queue. Shared by the fabric and the endpoints, so that either
// may go first. One thread. Nothing here iterates over pointers or hashes: that would let the
// machine decide what the seed must.

namespace rdmacc {

class SimEndpoint;
constexpr uint32_t kSimNone = UINT32_MAX;

// A chain on its way, at its target, or its completion on the way back.
struct SimChain {
  struct SimInitiator* initiator = nullptr;
  NodeId node = 0;
  uint32_t number = 0;  // of its initiator
  Completion* completion = nullptr;
  std::vector<Verb> verbs;
  std::vector<uint64_t> payload;  // of WRITEs whose owner is gone
  uint64_t arrives_ns = 0;
  uint32_t next = kSimNone;  // in the queue of its queue pair, or in the free list
  size_t verb_at = 0;
  size_t cut = 0;  // verbs from here on are not carried out
  bool failed = false;
  // Progress within a torn verb: its lines in the order they are carried out.
  std::vector<uint32_t> lines;
  size_t line_at = 0;
  uint32_t word_at = 0;
};

// Chains of one initiator to one node: carried out and completed in order.
struct SimQueuePair {
  uint32_t first = kSimNone;
  uint32_t last = kSimNone;
  uint64_t last_done_ns = 0;
};

// One incarnation of a worker. Outlives its endpoint while verbs of its are in flight.
struct SimInitiator {
  WorkerId worker = kNoWorker;
  uint32_t incarnation = 0;
  SimEndpoint* endpoint = nullptr;
  bool gone = false;       // killed or left: nothing is reported to it any more
  uint32_t in_flight = 0;  // chains not yet carried out
  uint32_t sent = 0;       // datagrams
  uint32_t chains = 0;     // posted
  std::vector<SimQueuePair> queue_pairs;
};

struct SimDatagram {
  WorkerId from = kNoWorker;
  WorkerId to = kNoWorker;
  uint32_t to_incarnation = 0;
  uint32_t references = 0;  // events and inboxes that hold it
  uint32_t number = 0;      // of its sender
  bool lost = false;
  std::vector<std::byte> bytes;
};

struct SimSlot {
  enum class State : uint8_t { kFree, kLive, kLeft, kKilled };
  State state = State::kFree;
  uint32_t incarnation = 0;  // of the present or the last owner
  SimInitiator* initiator = nullptr;
  Scheduler* scheduler = nullptr;
  bool step_scheduled = false;
  uint64_t timer_ns = UINT64_MAX;
  uint64_t held_until_ns = 0;
  uint64_t clock_ns = 0;  // of the worker alone, with a chooser

  bool live() const { return state == State::kLive; }
};

class SimCluster {
 public:
  SimCluster(const Topology& topology, const SimOptions& options);
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  // ---- Membership (sim_fault.cc).
  SimInitiator* claim(WorkerId worker, SimEndpoint* endpoint);
  void leave(SimInitiator* initiator);
  void kill(WorkerId worker);
  bool claimable(WorkerId worker) const;
  bool departed(WorkerId worker) const;

  // ---- What endpoints do (sim_verbs.cc, sim_fabric.cc).
  void ring(SimInitiator* initiator, NodeId node, std::span<const Verb> verbs,
            Completion* completion);
  void send(SimInitiator* initiator, WorkerId to, std::span<const std::byte> bytes);
  void release_datagram(uint32_t index);
  void request_step(WorkerId worker);
  void watch_timer(WorkerId worker);

  // ---- The event loop (sim_fabric.cc).
  void carry_out(const SimEvent& event);
  // Workers that were given work from outside get a step.
  void rouse();

  // ---- Events by choice (sim_choice.cc).
  void set_chooser(SimChooser* its_chooser);
  bool run_chosen(const std::function<bool()>& done, uint64_t choices_max);
  uint64_t now_ns_of(WorkerId worker) const;
  // Around the time that all workers share: each is told another part of what it cannot know.
  ClockBounds clock_bounds_of(WorkerId worker) const;

  const Topology topology;
  const SimOptions options;
  Random random;
  uint64_t now_ns = 1'000'000;  // never 0, so that 0 can mean "not yet" above
  uint64_t passed_ns = 0;       // with a chooser: the pauses of all workers that have ended
  SimEventQueue queue;
  std::vector<SimSlot> slots;
  std::vector<std::byte*> regions;  // nullptr until a thread of the node has joined
  std::deque<SimDatagram> datagrams;
  std::byte* region_of(NodeId node);
  SimChooser* chooser = nullptr;
  SimChainRewriter rewriter;
  SimDelivery delivery;

 private:
  void carry_out_verb(uint32_t index);
  bool carry_out_piece(SimChain& chain, Verb& verb);
  bool tears(const Verb& verb) const;
  // Of a verb that tears: the bytes of line `line` that are carried out next.
  std::pair<uint32_t, uint32_t> piece_of(const SimChain& chain, const Verb& verb,
                                         uint32_t line) const;
  bool last_piece_of_line(const SimChain& chain, const Verb& verb, uint32_t line) const;
  void plan_lines(SimChain& chain, const Verb& verb);
  bool reachable(NodeId node) const;
  void finish_chain(uint32_t index);
  void chain_done(uint32_t index);
  void deliver(uint32_t index);
  void step_worker(WorkerId worker);
  void abandon_chains(SimInitiator& initiator, bool by_chance);
  void detach_buffers(SimChain& chain);
  uint32_t take_chain();
  void give_back_chain(uint32_t index);
  uint64_t between(uint32_t min_ns, uint32_t max_ns);
  uint64_t stall();
  uint64_t delay_of(const SimChain& chain);
  uint64_t one_way_ns(const SimInitiator& initiator, NodeId node);
  void schedule(uint64_t at_ns, SimEventKind kind, uint32_t index);
  void gather_choices();
  void gather_pieces(uint32_t index);
  void carry_out(const SimChoice& choice);
  void carry_out_chosen_piece(const SimChoice& piece);

  SimDelayer delayer_;
  std::deque<SimChain> chains_;
  uint32_t free_chain_ = kSimNone;
  std::vector<uint32_t> free_datagrams_;
  std::vector<std::unique_ptr<SimInitiator>> initiators_;  // all there ever were
  // With a chooser: what happens before the next choice, and what may be chosen.
  std::deque<SimEvent> at_once_;
  std::vector<uint32_t> waiting_datagrams_;
  std::vector<SimChoice> choices_;
  std::vector<uint64_t> words_before_;
};

}  // namespace rdmacc
