#include "rdma/verbs/verbs_datagrams.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace rdmacc {

Status VerbsDatagrams::open(WorkerId self, uint32_t incarnation, ibv_comp_channel* channel) {
  self_ = self;
  const uint32_t receives = options_.receive_depth;
  stride_ = (kRouteHeaderBytes + device_.datagram_bytes() + 63) / 64 * 64;
  Result<std::byte*> receive_memory = memory_.allocate(size_t{stride_} * receives);
  if (!receive_memory.ok()) return receive_memory.status();
  receives_ = *receive_memory;
  receives_key_ = memory_.key_of(receives_, size_t{stride_} * receives);
  Result<std::byte*> send_memory = memory_.allocate(size_t{device_.datagram_bytes()} * kSendSlots);
  if (!send_memory.ok()) return send_memory.status();
  sends_ = *send_memory;
  sends_key_ = memory_.key_of(sends_, size_t{device_.datagram_bytes()} * kSendSlots);

  received_.reset(
      ibv_create_cq(device_.context(), static_cast<int>(receives), nullptr, channel, 0));
  sent_queue_.reset(
      ibv_create_cq(device_.context(), static_cast<int>(kSendSlots), nullptr, channel, 0));
  if (received_ == nullptr || sent_queue_ == nullptr) {
    return verbs_failure("ibv_create_cq (datagrams)");
  }
  address_.incarnation = incarnation;
  address_.key = verbs_random() >> 1;  // the highest bit is the kernel's
  Result<VerbsHandle<ibv_qp>> made = make_datagram(
      device_, {sent_queue_.get(), received_.get(), kSendSlots, receives, address_.key});
  if (!made.ok()) return made.status();
  queue_pair_ = std::move(*made);
  address_.number = queue_pair_->qp_num;
  std::vector<uint32_t> buffers(receives);
  for (uint32_t i = 0; i < receives; ++i) buffers[i] = i;
  return post_receives(buffers);
}

Status VerbsDatagrams::post_receives(const std::vector<uint32_t>& buffers) {
  std::vector<ibv_recv_wr> works(buffers.size());
  std::vector<ibv_sge> places(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    places[i] = {reinterpret_cast<uintptr_t>(receive_buffer(buffers[i])), stride_, receives_key_};
    works[i] = {};
    works[i].wr_id = buffers[i];
    works[i].sg_list = &places[i];
    works[i].num_sge = 1;
    works[i].next = i + 1 < buffers.size() ? &works[i + 1] : nullptr;
  }
  ibv_recv_wr* refused = nullptr;
  if (works.empty() || ibv_post_recv(queue_pair_.get(), works.data(), &refused) == 0) {
    return Status();
  }
  return verbs_failure("ibv_post_recv");
}

void VerbsDatagrams::set_peer(WorkerId worker, const VerbsDatagramAddress& address,
                              const VerbsPortAddress& port) {
  CHECK(worker < peers_.size());
  peers_[worker] = Peer{address, port, nullptr};
}

bool VerbsDatagrams::send(WorkerId to, std::span<const std::byte> bytes) {
  CHECK(to < peers_.size() && !bytes.empty() && bytes.size() <= device_.datagram_bytes());
  Peer& peer = peers_[to];
  CHECK(peer.address.incarnation != 0);
  if (sent_ - sends_retired_ >= kSendSlots / 2) retire_sends();
  if (sent_ - sends_retired_ >= kSendSlots) return false;
  if (peer.route == nullptr) {
    ibv_ah_attr route = device_.route_to(peer.port);
    peer.route.reset(ibv_create_ah(device_.domain(), &route));
    if (peer.route == nullptr) return true;  // unreachable: lost
  }
  std::byte* const slot = sends_ + sent_ % kSendSlots * device_.datagram_bytes();
  std::memcpy(slot, bytes.data(), bytes.size());
  ibv_sge place = {reinterpret_cast<uintptr_t>(slot), static_cast<uint32_t>(bytes.size()),
                   sends_key_};
  ibv_send_wr work{};
  work.wr_id = sent_ + 1;
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND_WITH_IMM;
  if ((sent_ + 1) % kSignalEvery == 0) work.send_flags = IBV_SEND_SIGNALED;
  work.imm_data = htonl(static_cast<uint32_t>(self_) << 16 | (address_.incarnation & 0xFFFF));
  work.wr.ud.ah = peer.route.get();
  work.wr.ud.remote_qpn = peer.address.number;
  work.wr.ud.remote_qkey = peer.address.key;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(queue_pair_.get(), &work, &refused) != 0) return false;
  ++sent_;
  return true;
}

// A completion says that all before are done. Also with an error: what could not be sent is lost,
// and its slot free.
void VerbsDatagrams::retire_sends() {
  ibv_wc works[kSendSlots / kSignalEvery];
  const int count = ibv_poll_cq(sent_queue_.get(), kSendSlots / kSignalEvery, works);
  CHECK(count >= 0);
  for (int i = 0; i < count; ++i) sends_retired_ = std::max(sends_retired_, works[i].wr_id);
}

bool VerbsDatagrams::arrived(const ibv_wc& work, Arrival* arrival) {
  arrival->buffer = static_cast<uint32_t>(work.wr_id);
  CHECK(arrival->buffer < options_.receive_depth);
  if (work.status != IBV_WC_SUCCESS || (work.wc_flags & IBV_WC_WITH_IMM) == 0 ||
      work.byte_len <= kRouteHeaderBytes || work.byte_len > stride_) {
    give_back(*arrival);
    return false;
  }
  const uint32_t said = ntohl(work.imm_data);
  arrival->from = static_cast<WorkerId>(said >> 16);
  arrival->incarnation_low = said & 0xFFFF;
  arrival->queue_pair = work.src_qp;
  arrival->bytes = {receive_buffer(arrival->buffer) + kRouteHeaderBytes,
                    work.byte_len - kRouteHeaderBytes};
  return true;
}

bool VerbsDatagrams::genuine(const Arrival& arrival) const {
  if (arrival.from >= peers_.size()) return false;
  const VerbsDatagramAddress& known = peers_[arrival.from].address;
  return known.incarnation != 0 && known.number == arrival.queue_pair &&
         (known.incarnation & 0xFFFF) == arrival.incarnation_low;
}

void VerbsDatagrams::give_back(const Arrival& arrival) {
  returned_.push_back(arrival.buffer);
  if (returned_.size() < kReceiveBatch) return;
  // A queue pair that takes no more receives is broken: datagrams are lost, as they may be.
  static_cast<void>(post_receives(returned_));
  returned_.clear();
}

}  // namespace rdmacc
