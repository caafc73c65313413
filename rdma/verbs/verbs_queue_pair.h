#pragma once
#include "rdma/verbs/verbs_device.h"

namespace rdmacc {

// Making of queue pairs and their way from one state to the next.

struct VerbsPeerQueue {
  VerbsPortAddress port;
  VerbsQueuePairAddress queue;
  uint8_t reads_in_flight = 0;  // that the other side offers
};

// A reliable connection before it knows its peer. `peer_access`: rights of verbs that come in (0 on
// the initiator's side, IBV_ACCESS_REMOTE_* on a node's).
struct VerbsReliableShape {
  ibv_cq* completions = nullptr;
  uint32_t send_depth = 1;
  uint32_t inline_bytes = 0;  // wanted; with less, if the device has less
  unsigned peer_access = 0;
};
Result<VerbsHandle<ibv_qp>> make_reliable(const VerbsDevice& device,
                                          const VerbsReliableShape& shape);
// To ready-to-send; `own` is what the peer was told of this side.
Status connect_reliable(const VerbsDevice& device, ibv_qp* queue_pair,
                        const VerbsQueuePairAddress& own, const VerbsPeerQueue& peer,
                        const VerbsOptions& options);

struct VerbsDatagramShape {
  ibv_cq* sent = nullptr;
  ibv_cq* received = nullptr;
  uint32_t send_depth = 0, receive_depth = 0;
  uint32_t key = 0;
};
// Ready to send.
Result<VerbsHandle<ibv_qp>> make_datagram(const VerbsDevice& device,
                                          const VerbsDatagramShape& shape);

// What `queue_pair` can take inline.
uint32_t inline_bytes_of(ibv_qp* queue_pair);
// A number that cannot be guessed, and a queue pair's own.
VerbsQueuePairAddress new_address_of(ibv_qp* queue_pair);

}  // namespace rdmacc
