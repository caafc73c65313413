#include "rdma/rpc/rpc_outbox.h"

namespace rdmacc {
namespace {

template <typename T>
void append_object(Rpc::Bytes& bytes, const T& object) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* start = reinterpret_cast<const std::byte*>(&object);
  bytes.insert(bytes.end(), start, start + sizeof(T));
}

}  // namespace

RpcOutbox::RpcOutbox(Scheduler& scheduler, RpcMessageSource& source, uint32_t datagram_bytes_max)
    : scheduler_(scheduler),
      source_(source),
      datagram_bytes_max_(datagram_bytes_max),
      payload_bytes_(fragment_payload_bytes(datagram_bytes_max)) {
  datagram_.reserve(datagram_bytes_max);
}

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
  peer.listed = true;
  listed_.push_back(to);
  if (!scheduler_.stepping()) scheduler_.endpoint().wake();
}

bool RpcOutbox::flush() {
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
  datagram_.clear();
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
      const bool fits = datagram_.size() + needed <= datagram_bytes_max_;
      if (!datagram_.empty() && (!fits || view.to_incarnation != to_incarnation_)) {
        room = ship(to);
        if (!room) break;
        mark = i;
        mark_offset = queue[i].offset;
      }
      more = append(to, queue[i], view);
    }
  }
  if (room && !datagram_.empty()) room = ship(to);
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
bool RpcOutbox::append(WorkerId, RpcOutMessage& message, const RpcMessageView& view) {
  CHECK(view.bytes.size() <= kMaxMessageBytes);
  const auto total = static_cast<uint32_t>(view.bytes.size());
  const uint32_t bytes = std::min(total - message.offset, payload_bytes_);
  if (datagram_.empty()) {
    to_incarnation_ = view.to_incarnation;
    patient_ = true;
    append_object(datagram_, RpcDatagramHeader{kRpcMagic, scheduler_.endpoint().incarnation(),
                                               to_incarnation_, 0});
  }
  patient_ = patient_ && message.patient;
  append_object(datagram_, RpcFragmentHeader{.sequence = message.sequence,
                                             .total_bytes = total,
                                             .offset = message.offset,
                                             .bytes = static_cast<uint16_t>(bytes),
                                             .method = view.method,
                                             .kind = message.kind,
                                             .slot = message.slot,
                                             .code = view.code,
                                             .reserved = 0});
  const auto payload = view.bytes.subspan(message.offset, bytes);
  datagram_.insert(datagram_.end(), payload.begin(), payload.end());
  message.offset += bytes;
  return message.offset < total && !message.first_only;
}

bool RpcOutbox::ship(WorkerId to) {
  CHECK(datagram_.size() <= datagram_bytes_max_);
  Endpoint& endpoint = scheduler_.endpoint();
  if (to == endpoint.worker()) {
    loopback_.push_back(datagram_);
  } else if (!(patient_ ? endpoint.send_quietly(to, datagram_) : endpoint.send(to, datagram_))) {
    return false;
  }
  datagram_.clear();
  return true;
}

}  // namespace rdmacc
