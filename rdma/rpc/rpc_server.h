#pragma once
#include <array>
#include <memory>
#include <vector>

#include "rdma/rpc/rpc_outbox.h"

namespace rdmacc {

// The answering half of an Rpc. Keeps, for every slot of every caller, the last call's sequence
// and reply: that is what makes a handler run at most once (R1, R3).
class RpcServer {
 public:
  RpcServer(Scheduler& scheduler, RpcOutbox& outbox, uint32_t payload_bytes);

  void handle(MethodId method, Rpc::Handler handler);
  // False when the fragment contradicts what its caller sent before.
  bool on_request(WorkerId from, const RpcDatagramHeader& header, const RpcFragmentHeader& fragment,
                  std::span<const std::byte> payload);
  // The caller does not want the call any more; its handler, if it runs, goes on until it looks.
  void on_cancel(WorkerId from, const RpcDatagramHeader& header, const RpcFragmentHeader& fragment);
  const bool* call_cancelled() const { return starting_; }
  // Runs requests that found no free coroutine; at the end of every step.
  void run_waiting() {
    if (waiting_.size() > first_waiting_ + coming_) start_coroutines();
  }
  bool view(WorkerId to, const RpcOutMessage& message, RpcMessageView* view) const;

 private:
  enum class State : uint8_t { kEmpty, kReceiving, kWaiting, kRunning, kReplied };
  struct Slot {
    State state = State::kEmpty;
    uint32_t sequence = 0;
    MethodId method = 0;
    Code code = Code::kOk;
    uint16_t detail = 0;
    bool cancelled = false;
    bool* handlers = nullptr;  // what the running handler sees of it, in the handler's frame
    RpcAssembly assembly;
    Rpc::Bytes request;
    Rpc::Bytes reply;
  };
  struct Peer {
    uint32_t incarnation = 0;
    std::array<Slot, Rpc::kCallsPerPeer> slots;
  };
  // Names a call for as long as its handler may take.
  struct CallId {
    WorkerId from;
    uint8_t slot;
    uint32_t incarnation;
    uint32_t sequence;
  };

  Peer* peer_for(WorkerId from, uint32_t incarnation);
  Slot* find(const CallId& id, State state);
  bool on_known(WorkerId from, Slot& slot, const RpcFragmentHeader& fragment);
  // Handlers get their coroutines in the order in which the requests were complete.
  void start_coroutines();
  CallId take_waiting();
  void run(const CallId& id);

  Scheduler& scheduler_;
  RpcOutbox& outbox_;
  const uint32_t payload_bytes_;
  std::vector<Rpc::Handler> handlers_;        // by method
  std::vector<std::unique_ptr<Peer>> peers_;  // by worker
  std::vector<CallId> waiting_;               // bounded by R3; from first_waiting_ on
  size_t first_waiting_ = 0;
  size_t coming_ = 0;               // coroutines that were started and take one each
  const bool* starting_ = nullptr;  // of the handler that runs, until it yields
};

}  // namespace rdmacc
