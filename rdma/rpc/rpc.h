#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rdma/coroutine/doorbell_batch.h"
#include "rdma/coroutine/scheduler.h"

// Request/reply over datagrams, at most once. Requests and replies of up to kMaxMessageBytes are
// cut into fragments; small messages of one step to one peer share a datagram. Lost datagrams are
// sent again after a timeout that doubles; a doubled request is answered from the cached reply.
//
//  R1  A handler runs at most once for a call, in a coroutine of its own; it may yield, wait and
//      use verbs, and replies by returning (a deferred reply is one that returns late).
//  R2  A call carries the incarnation of the callee it was made to. When that process is gone the
//      call ends with kUnavailable: whether its handler ran, and how far, is unknown. So do all
//      calls of a worker that was taken for dead.
//  R3  Memory for a peer is bounded: at most kCallsPerPeer calls under way, one cached reply each.
//  R4  A call that its caller has given up (silence_us_max) keeps its slot until the callee has
//      answered or has gone.
//
// One Rpc per worker, used by its thread alone.

namespace rdmacc {

using MethodId = uint16_t;
constexpr size_t kMaxMessageBytes = (1u << 20) + 64 * 1024;

class Rpc {
 public:
  using Bytes = std::vector<std::byte>;
  // A returned error travels to the caller as code, detail and message (first 200 bytes).
  using Handler =
      std::function<Status(WorkerId from, std::span<const std::byte> request, Bytes& reply)>;

  // A call under way. Owned by the caller, in place until its Completion is done.
  struct Call {
    WorkerId to = kNoWorker;
    MethodId method = 0;
    // Becomes true when the caller no longer wants what it asked for (nullptr: always does). It is
    // looked at every kCancelLookUs, and the handler is told; the call ends when that returns.
    const bool* cancelled = nullptr;
    // It can wait until the callee wakes for something else, or for Options::retry_us.
    bool patient = false;
    // When the callee has given no sign of life for so long, or `cancelled` is true, the call ends
    // with kTimeout, or kCancelled, whatever becomes of it at the callee (0: it is waited for). For
    // handlers that change nothing.
    uint64_t silence_us_max = 0;
    Bytes request{};
    Bytes reply{};
    Status status{};
  };

  static constexpr uint32_t kCallsPerPeer = 64;
  static constexpr uint64_t kCancelLookUs = 5'000;

  struct Options {
    uint32_t retry_us = 20'000;       // first retransmission; doubles up to
    uint32_t retry_us_max = 160'000;  // this, which also bounds how late a dead callee is noticed
    uint32_t datagram_bytes = 4096;   // at most the fabric's; the same in the whole cluster
  };

  explicit Rpc(Scheduler& scheduler);
  Rpc(Scheduler& scheduler, Options options);
  ~Rpc();
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;

  void handle(MethodId method, Handler handler);
  // For a handler, before it first yields: becomes true when its caller has cancelled the call.
  // Valid until it returns.
  const bool* call_cancelled() const;

  // Starts a call; the caller has counted it in completion.outstanding.
  void post(Call& call, Completion& completion);
  // Posts all, yields once until all have ended; counts one round trip. Each call's status says
  // how it ended.
  void call_all(std::span<Call> calls, VerbCounters& counters);
  Status call_one(Call& call, VerbCounters& counters);

  uint64_t retransmissions() const;
  // Dropped because they did not parse, or contradicted what their sender had sent before.
  uint64_t malformed_datagrams() const;
  // Dropped because they were meant for another owner of this worker id.
  uint64_t refused_datagrams() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rdmacc
