#include "rdma/rpc/rpc_outbox.h"

namespace rdmacc {

RpcOutbox::RpcOutbox(Scheduler& scheduler, RpcMessageSource& source, uint32_t datagram_bytes_max)
    : scheduler_(scheduler),
      source_(source),
      datagram_bytes_max_(datagram_bytes_max),
      payload_bytes_(fragment_payload_bytes(datagram_bytes_max)),
      datagram_(new std::byte[datagram_bytes_max]) {}

void RpcOutbox::push(WorkerId to, const RpcOutMessage& message) {
  CHECK(to != kNoWorker && message.slot < Rpc::kCallsPerPeer && message.offset == 0);
  if (to >= peers_.size()) peers_.resize(to + size_t{1});
  if (peers_[to] == nullptr) peers_[to] = std::make_unique<Peer>();
  Peer& peer = *peers_[to];
  // A retransmission of what is still waiting for room adds nothing.
  for (const RpcOutMessage& queued : peer.queue) {
    if (queued.kind == message.kind && queued.slot == message.slot &&
        queued.sequence == message.sequence) {
      return;
    }
  }
  peer.queue.push_back(message);
  if (peer.listed) return;
  // No other coroutine of this step can have something to say that would go along with it.
  if (scheduler_.stepping() && scheduler_.quiet() && flush_peer(to, peer)) return;
  peer.listed = true;
  listed_.push_back(to);
  if (!scheduler_.stepping()) scheduler_.endpoint().wake();
}

bool RpcOutbox::flush() {
  if (listed_.empty()) return true;
  listed_now_.swap(listed_);
  for (const WorkerId to : listed_now_) {
    Peer& peer = *peers_[to];
    if (flush_peer(to, peer)) {
      peer.listed = false;
    } else {
      listed_.push_back(to);
    }
  }
  listed_now_.clear();
  return listed_.empty();
}

bool RpcOutbox::flush_peer(WorkerId to, Peer& peer) {
  std::vector<RpcOutMessage>& queue = peer.queue;
  datagram_bytes_ = 0;
  // Where the datagram under construction began: what is queued from there on is not sent yet.
  size_t mark = 0;
  uint32_t mark_offset = queue.empty() ? 0 : queue[0].offset;
  bool room = true;
  for (size_t i = 0; i < queue.size() && room; ++i) {
    RpcMessageView view;
    if (!source_.view(to, queue[i], &view)) continue;
    bool more = true;
    while (more) {
      CHECK(queue[i].offset <= view.bytes.size());
      const auto left = static_cast<uint32_t>(view.bytes.size()) - queue[i].offset;
      const size_t needed = sizeof(RpcFragmentHeader) + std::min(left, payload_bytes_);
      const bool fits = datagram_bytes_ + needed <= datagram_bytes_max_;
      if (datagram_bytes_ > 0 && (!fits || view.to_incarnation != to_incarnation_)) {
        room = ship(to);
        if (!room) break;
        mark = i;
        mark_offset = queue[i].offset;
      }
      more = append(queue[i], view);
    }
  }
  if (room && datagram_bytes_ > 0) room = ship(to);
  if (room) {
    queue.clear();
    return true;
  }
  for (size_t i = mark + 1; i < queue.size(); ++i) queue[i].offset = 0;
  queue[mark].offset = mark_offset;
  queue.erase(queue.begin(), queue.begin() + static_cast<ptrdiff_t>(mark));
  return false;
}

// Adds the message's next fragment; true if there are more.
bool RpcOutbox::append(RpcOutMessage& message, const RpcMessageView& view) {
  CHECK(view.bytes.size() <= kMaxMessageBytes);
  const auto total = static_cast<uint32_t>(view.bytes.size());
  const uint32_t bytes = std::min(total - message.offset, payload_bytes_);
  if (datagram_bytes_ == 0) {
    to_incarnation_ = view.to_incarnation;
    patient_ = true;
    const RpcDatagramHeader header{kRpcMagic, scheduler_.endpoint().incarnation(), to_incarnation_,
                                   0};
    put(&header, sizeof(header));
  }
  patient_ = patient_ && message.patient;
  const RpcFragmentHeader fragment{.sequence = message.sequence,
                                   .total_bytes = total,
                                   .offset = message.offset,
                                   .bytes = static_cast<uint16_t>(bytes),
                                   .method = view.method,
                                   .kind = message.kind,
                                   .slot = message.slot,
                                   .code = view.code,
                                   .reserved = 0};
  put(&fragment, sizeof(fragment));
  if (bytes > 0) put(view.bytes.data() + message.offset, bytes);
  message.offset += bytes;
  return message.offset < total && !message.first_only;
}

void RpcOutbox::put(const void* from, size_t bytes) {
  CHECK(bytes <= datagram_bytes_max_ - datagram_bytes_);
  std::memcpy(datagram_.get() + datagram_bytes_, from, bytes);
  datagram_bytes_ += bytes;
}

bool RpcOutbox::ship(WorkerId to) {
  const std::span<const std::byte> datagram(datagram_.get(), datagram_bytes_);
  Endpoint& endpoint = scheduler_.endpoint();
  if (to == endpoint.worker()) {
    loopback_.emplace_back(datagram.begin(), datagram.end());
  } else if (!(patient_ ? endpoint.send_quietly(to, datagram) : endpoint.send(to, datagram))) {
    return false;
  }
  datagram_bytes_ = 0;
  return true;
}

}  // namespace rdmacc
