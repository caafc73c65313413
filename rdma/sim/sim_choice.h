#pragma once
#include <functional>
#include <span>
#include <vector>

#include "rdma/fabric/verb.h"

// Decides what happens next in the simulator in place of its clock: a test that tries
// every order of events. Completions and the steps of workers happen at once, since they are
// invisible to others; what is left to choose is given to SimChooser. Each worker then has a
// clock of its own that stands still but for its timers, so that what a worker does follows from
// what it has seen alone.

namespace rdmacc {

// Something that can happen next. (kind, worker, peer, part) names it as long as it has not
// happened, whatever else happens before.
struct SimChoice {
  enum class Kind : uint8_t {
    kPiece,     // the next word or line of a verb is carried out at its target
    kDatagram,  // a datagram reaches its receiver
    kTimer,     // a worker's clock reaches its next timer
  };
  Kind kind = Kind::kPiece;
  WorkerId worker = kNoWorker;  // that posted the verb, receives the datagram, has the timer
  uint16_t peer = 0;            // kPiece: the node; kDatagram: the sender
  uint32_t part = 0;            // kPiece: line of the verb; kDatagram: sent so many before
  // kPiece: what it touches, and whether its verb or its chain is complete with it.
  Opcode opcode = Opcode::kRead;
  bool last_of_verb = false;
  bool last_of_chain = false;
  uint32_t chain = 0;  // posted so many before by this worker
  uint32_t bytes = 0;
  uint64_t offset = 0;
  uint64_t deadline_us = 0;  // kTimer
  uint32_t index = 0;        // the simulator's own
};

class SimChooser {
 public:
  static constexpr size_t kStop = SIZE_MAX;  // ends run_until(), which returns false

  virtual ~SimChooser() = default;
  // One of `possible` (never empty), which come in an order that follows from the state alone.
  virtual size_t choose(std::span<const SimChoice> possible) = 0;
  // A piece was carried out; the words that it touched, before and after.
  virtual void piece_done(const SimChoice& piece, std::span<const uint64_t> before,
                          std::span<const uint64_t> after) = 0;
  virtual void datagram_arrives(const SimChoice& datagram, std::span<const std::byte> bytes) = 0;
  // A worker's code has run, and has posted `chains` by now; a node's may have changed its own
  // region without a verb.
  virtual void stepped(WorkerId worker, uint32_t chains) = 0;
};

// For tests of the tests: may alter a chain before it is posted, as a wrong driver would have
// posted it. Verbs that it adds bring local buffers that outlive the chain.
using SimChainRewriter = std::function<void(WorkerId worker, NodeId node, std::vector<Verb>&)>;
// Likewise may alter what a READ or an atomic has brought into its local buffer, as a driver that
// does not look at it would have taken it. Called when the verb is complete at its target.
using SimDelivery = std::function<void(WorkerId worker, NodeId node, const Verb& verb)>;

}  // namespace rdmacc
