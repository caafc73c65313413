#pragma once
#include <memory>
#include <vector>

#include "rdma/rpc/rpc_wire.h"

namespace rdmacc {

// Names a message that is to be sent; its bytes stay where they are until the datagram is made.
struct RpcOutMessage {
  RpcKind kind;
  uint8_t slot;
  bool first_only;  // a probe: the receiver has the rest
  uint32_t sequence;
  uint32_t offset = 0;  // sent up to here
  bool patient = false;
};

struct RpcMessageView {
  std::span<const std::byte> bytes;
  uint32_t to_incarnation = 0;
  uint16_t method = 0;
  Code code = Code::kOk;
};

// The owner of the bytes of a queued message; false when the call has ended meanwhile.
class RpcMessageSource {
 public:
  virtual ~RpcMessageSource() = default;
  virtual bool view(WorkerId to, const RpcOutMessage& message, RpcMessageView* view) = 0;
};

// The messages of one step, by receiver: flush() packs small ones into common datagrams and cuts
// large ones. When no other coroutine is ready, a message leaves at once. What the fabric has no
// room for stays queued and is tried again soon after, so a large message flows at the receiver's
// pace. A worker's messages to itself do not use the fabric.
class RpcOutbox {
 public:
  RpcOutbox(Scheduler& scheduler, RpcMessageSource& source, uint32_t datagram_bytes_max);

  void push(WorkerId to, const RpcOutMessage& message);
  // False when something is left over (the fabric had no room).
  bool flush();
  // Datagrams from this worker to itself since the last call.
  bool has_loopback() const { return !loopback_.empty(); }
  std::vector<Rpc::Bytes> take_loopback() { return std::exchange(loopback_, {}); }

 private:
  struct Peer {
    std::vector<RpcOutMessage> queue;
    bool listed = false;
  };

  bool flush_peer(WorkerId to, Peer& peer);
  bool append(RpcOutMessage& message, const RpcMessageView& view);
  void put(const void* from, size_t bytes);
  bool ship(WorkerId to);

  Scheduler& scheduler_;
  RpcMessageSource& source_;
  const uint32_t datagram_bytes_max_;
  const uint32_t payload_bytes_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by worker
  std::vector<WorkerId> listed_, listed_now_;
  const std::unique_ptr<std::byte[]> datagram_;  // under construction, and
  size_t datagram_bytes_ = 0;                    // of it so far
  uint32_t to_incarnation_ = 0;                  // of the datagram under construction
  bool patient_ = false;                         // all that it holds is
  std::vector<Rpc::Bytes> loopback_;
};

}  // namespace rdmacc
