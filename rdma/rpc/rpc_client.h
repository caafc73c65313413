#pragma once
#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "rdma/rpc/rpc_outbox.h"

namespace rdmacc {

// The calling half of an Rpc. Each peer has kCallsPerPeer slots; a call holds one until it has
// ended, so (caller, its incarnation, slot, sequence) names a call for good.
class RpcClient {
 public:
  RpcClient(Scheduler& scheduler, RpcOutbox& outbox, Rpc::Options options, uint32_t payload_bytes,
            std::shared_ptr<const bool> alive);

  void post(Rpc::Call& call, Completion& completion);
  void on_reply(WorkerId from, const RpcDatagramHeader& header, const RpcFragmentHeader& fragment,
                std::span<const std::byte> payload);
  bool view(WorkerId to, const RpcOutMessage& message, RpcMessageView* view) const;

  uint64_t retransmissions() const { return retransmissions_; }

 private:
  struct Slot {
    Rpc::Call* call = nullptr;
    Completion* completion = nullptr;
    uint32_t sequence = 0;
    uint32_t callee_incarnation = 0;
    bool accepted = false;   // the callee has the whole request
    bool cancelled = false;  // the callee has been told that the call is not wanted any more
    std::unique_ptr<Rpc::Call> orphan;  // the call, when its caller has given it up
    uint64_t heard_us = 0;              // of the callee; when it was made
    uint64_t deadline_us = 0;
    uint32_t timeout_us = 0;
    size_t active_at = 0;  // in active_
    RpcAssembly reply;
  };
  struct Waiting {
    Rpc::Call* call;
    Completion* completion;
    uint32_t callee_incarnation;
  };
  struct Peer {
    std::array<Slot, Rpc::kCallsPerPeer> slots;
    std::vector<uint8_t> free;
    std::deque<Waiting> waiting;  // all slots are busy
    uint32_t orphans = 0;         // calls that were given up
  };
  struct Active {
    WorkerId to;
    uint8_t slot;
  };

  Peer& peer_of(WorkerId to);
  void start(Peer& peer, const Waiting& waiting);
  void end(Active active, Status status);
  static void finish(const Waiting& waiting, Status status);
  // Ends the call for its caller alone (R4), if it is one that may be given up and time is over.
  void give_up(Peer& peer, Slot& slot, uint64_t now_us);
  // When something may have to be done for a call under way.
  uint64_t next_look_us(const Slot& slot, uint64_t now_us) const;
  void arm(uint64_t deadline_us);
  void on_timer();

  Scheduler& scheduler_;
  RpcOutbox& outbox_;
  const Rpc::Options options_;
  const uint32_t payload_bytes_;
  const std::shared_ptr<const bool> alive_;   // timers may be left over when the Rpc is gone
  std::vector<std::unique_ptr<Peer>> peers_;  // by worker
  std::vector<Active> active_;
  uint64_t armed_us_ = UINT64_MAX;  // the timer that is set
  uint64_t retransmissions_ = 0;
};

}  // namespace rdmacc
