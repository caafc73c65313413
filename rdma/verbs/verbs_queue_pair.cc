#include "rdma/verbs/verbs_queue_pair.h"

#include <algorithm>

namespace rdmacc {
namespace {

constexpr uint8_t kReceiverNotReadyTimer = 12;  // 0.64 ms; nothing receives on these connections
constexpr uint8_t kReceiverNotReadyRetries = 6;
constexpr uint32_t kPacketNumberMask = (1u << 24) - 1;

Status change(ibv_qp* queue_pair, ibv_qp_attr& attributes, int mask, const char* what) {
  if (ibv_modify_qp(queue_pair, &attributes, mask) == 0) return Status();
  return verbs_failure(what);
}

ibv_qp_init_attr shape_of(ibv_cq* completions, uint32_t send_depth, uint32_t receive_depth) {
  ibv_qp_init_attr shape{};
  shape.send_cq = shape.recv_cq = completions;
  shape.cap.max_send_wr = send_depth;
  shape.cap.max_recv_wr = receive_depth;
  shape.cap.max_send_sge = shape.cap.max_recv_sge = 1;
  return shape;
}

}  // namespace

Result<VerbsHandle<ibv_qp>> make_reliable(const VerbsDevice& device,
                                          const VerbsReliableShape& shape) {
  CHECK(shape.completions != nullptr && shape.send_depth > 0);
  ibv_qp_init_attr wanted = shape_of(shape.completions, shape.send_depth, 1);
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_inline_data = shape.inline_bytes;
  VerbsHandle<ibv_qp> made(ibv_create_qp(device.domain(), &wanted));
  while (made == nullptr && wanted.cap.max_inline_data > 0) {
    wanted.cap.max_inline_data /= 2;
    made.reset(ibv_create_qp(device.domain(), &wanted));
  }
  if (made == nullptr) return verbs_failure("ibv_create_qp (reliable)");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device.port();
  attributes.qp_access_flags = shape.peer_access;
  RDMACC_RETURN_IF_ERROR(change(
      made.get(), attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
      "ibv_modify_qp (reliable, init)"));
  return made;
}

Status connect_reliable(const VerbsDevice& device, ibv_qp* queue_pair,
                        const VerbsQueuePairAddress& own, const VerbsPeerQueue& peer,
                        const VerbsOptions& options) {
  CHECK(queue_pair != nullptr && own.number == queue_pair->qp_num);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = device.route_to(peer.port);
  attributes.path_mtu = static_cast<ibv_mtu>(std::min<int>(device.address().mtu, peer.port.mtu));
  attributes.dest_qp_num = peer.queue.number;
  attributes.rq_psn = peer.queue.first_packet & kPacketNumberMask;
  attributes.max_dest_rd_atomic = std::min(device.reads_in_max(), peer.reads_in_flight);
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  RDMACC_RETURN_IF_ERROR(change(queue_pair, attributes,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER,
                                "ibv_modify_qp (reliable, ready to receive)"));
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = own.first_packet;
  attributes.timeout = options.timeout_exponent;
  attributes.retry_cnt = options.retry_count;
  attributes.rnr_retry = kReceiverNotReadyRetries;
  attributes.max_rd_atomic = std::min(device.reads_out_max(), peer.reads_in_flight);
  return change(queue_pair, attributes,
                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                "ibv_modify_qp (reliable, ready to send)");
}

Result<VerbsHandle<ibv_qp>> make_datagram(const VerbsDevice& device,
                                          const VerbsDatagramShape& shape) {
  CHECK(shape.sent != nullptr && shape.received != nullptr && shape.receive_depth > 0);
  ibv_qp_init_attr wanted = shape_of(shape.sent, shape.send_depth, shape.receive_depth);
  wanted.recv_cq = shape.received;
  wanted.qp_type = IBV_QPT_UD;
  VerbsHandle<ibv_qp> made(ibv_create_qp(device.domain(), &wanted));
  if (made == nullptr) return verbs_failure("ibv_create_qp (datagrams)");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device.port();
  attributes.qkey = shape.key;
  RDMACC_RETURN_IF_ERROR(change(made.get(), attributes,
                                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
                                "ibv_modify_qp (datagrams, init)"));
  attributes.qp_state = IBV_QPS_RTR;
  RDMACC_RETURN_IF_ERROR(
      change(made.get(), attributes, IBV_QP_STATE, "ibv_modify_qp (datagrams, ready to receive)"));
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = verbs_random() & kPacketNumberMask;
  RDMACC_RETURN_IF_ERROR(change(made.get(), attributes, IBV_QP_STATE | IBV_QP_SQ_PSN,
                                "ibv_modify_qp (datagrams, ready to send)"));
  return made;
}

uint32_t inline_bytes_of(ibv_qp* queue_pair) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr shape{};
  if (ibv_query_qp(queue_pair, &attributes, IBV_QP_CAP, &shape) != 0) return 0;
  return shape.cap.max_inline_data;
}

VerbsQueuePairAddress new_address_of(ibv_qp* queue_pair) {
  return {queue_pair->qp_num, verbs_random() & kPacketNumberMask};
}

}  // namespace rdmacc
