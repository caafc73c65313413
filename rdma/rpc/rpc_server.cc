#include "rdma/rpc/rpc_server.h"

#include <utility>

namespace rdmacc {
namespace {

constexpr size_t kStatusTextBytesMax = 200;

Rpc::Bytes text_of(const Status& status) {
  const std::string& text = status.message();
  const auto* start = reinterpret_cast<const std::byte*>(text.data());
  return Rpc::Bytes(start, start + std::min(text.size(), kStatusTextBytesMax));
}

}  // namespace

RpcServer::RpcServer(Scheduler& scheduler, RpcOutbox& outbox, uint32_t payload_bytes)
    : scheduler_(scheduler), outbox_(outbox), payload_bytes_(payload_bytes) {}

void RpcServer::handle(MethodId method, Rpc::Handler handler) {
  CHECK(handler != nullptr && !handlers_.contains(method));
  handlers_.emplace(method, std::move(handler));
}

// The state of the live process `incarnation` of `from`; nullptr for one that is gone. A new
// owner of the worker id gets a clean state: its predecessor's calls can have no answer any more.
RpcServer::Peer* RpcServer::peer_for(WorkerId from, uint32_t incarnation) {
  // Also for a known peer: a late datagram of an owner that died must not be taken for its
  // successor's, nor after its resolution.
  if (incarnation == 0 || scheduler_.endpoint().incarnation_of(from) != incarnation) {
    return nullptr;
  }
  if (from < peers_.size() && peers_[from] != nullptr && peers_[from]->incarnation == incarnation) {
    return peers_[from].get();
  }
  if (from >= peers_.size()) peers_.resize(from + size_t{1});
  peers_[from] = std::make_unique<Peer>();
  peers_[from]->incarnation = incarnation;
  return peers_[from].get();
}

RpcServer::Slot* RpcServer::find(const CallId& id, State state) {
  if (id.from >= peers_.size() || peers_[id.from] == nullptr) return nullptr;
  Peer& peer = *peers_[id.from];
  Slot& slot = peer.slots[id.slot];
  const bool same = peer.incarnation == id.incarnation && slot.sequence == id.sequence;
  return same && slot.state == state ? &slot : nullptr;
}

bool RpcServer::on_request(WorkerId from, const RpcDatagramHeader& header,
                           const RpcFragmentHeader& fragment, std::span<const std::byte> payload) {
  Peer* peer = peer_for(from, header.from_incarnation);
  if (peer == nullptr) return true;
  Slot& slot = peer->slots[fragment.slot];
  const auto ahead = static_cast<int32_t>(fragment.sequence - slot.sequence);
  if (slot.state != State::kEmpty && ahead < 0) return true;  // a late duplicate
  if (slot.state == State::kEmpty || ahead > 0) {
    // A caller uses its slot again only when the call before has ended.
    if (slot.state == State::kWaiting || slot.state == State::kRunning) return false;
    slot.state = State::kReceiving;
    slot.sequence = fragment.sequence;
    slot.method = fragment.method;
    slot.cancelled = false;
    slot.assembly.clear();
    slot.reply = Rpc::Bytes();
  }
  if (slot.state != State::kReceiving) return on_known(from, slot, fragment);
  switch (slot.assembly.add(fragment, payload, payload_bytes_, slot.request)) {
    case RpcAssembly::Outcome::kPartial:
      return true;
    case RpcAssembly::Outcome::kMismatch:
      return false;
    case RpcAssembly::Outcome::kComplete:
      break;
  }
  slot.state = State::kWaiting;
  const CallId id{from, fragment.slot, peer->incarnation, slot.sequence};
  if (!waiting_.empty() || !try_run(id)) waiting_.push_back(id);
  return true;
}

// One that overtakes its request is lost: the caller repeats it.
void RpcServer::on_cancel(WorkerId from, const RpcDatagramHeader& header,
                          const RpcFragmentHeader& fragment) {
  if (from >= peers_.size() || peers_[from] == nullptr) return;
  if (peers_[from]->incarnation != header.from_incarnation) return;
  Slot& slot = peers_[from]->slots[fragment.slot];
  if (slot.state == State::kEmpty || slot.sequence != fragment.sequence) return;
  slot.cancelled = true;
  if (slot.handlers != nullptr) *slot.handlers = true;
}

// Something of a request that is complete already: the caller has not heard of it.
bool RpcServer::on_known(WorkerId from, Slot& slot, const RpcFragmentHeader& fragment) {
  if (fragment.offset != 0) return true;  // one answer per retransmission is enough
  const RpcKind kind = slot.state == State::kReplied ? RpcKind::kReply : RpcKind::kWorking;
  outbox_.push(from, RpcOutMessage{kind, fragment.slot, false, slot.sequence});
  return true;
}

bool RpcServer::try_run(const CallId& id) {
  return scheduler_.spawn([this, id] { run(id); });
}

void RpcServer::run_waiting() {
  while (!waiting_.empty() && try_run(waiting_.front())) waiting_.pop_front();
}

void RpcServer::run(const CallId& id) {
  Slot* slot = find(id, State::kWaiting);
  if (slot == nullptr) return;  // the caller has gone
  if (scheduler_.endpoint().incarnation_of(id.from) != id.incarnation) return;
  slot->state = State::kRunning;
  const Rpc::Bytes request = std::exchange(slot->request, {});
  Rpc::Bytes reply;
  Status status;
  bool cancelled = slot->cancelled;
  CHECK(slot->handlers == nullptr);
  slot->handlers = &cancelled;
  starting_ = &cancelled;
  const auto handler = handlers_.find(slot->method);
  if (handler == handlers_.end()) {
    status = Status(Code::kInvalidArgument, "unknown method " + std::to_string(slot->method));
  } else {
    status = handler->second(id.from, request, reply);
  }
  // The handler may have yielded: look the slot up again.
  slot = find(id, State::kRunning);
  if (slot == nullptr) return;
  slot->handlers = nullptr;
  if (status.ok() && reply.size() > kMaxMessageBytes) {
    status = Status(Code::kTooLarge, "reply longer than a message may be");
  }
  slot->reply = status.ok() ? std::move(reply) : text_of(status);
  slot->code = status.code();
  slot->detail = status.detail();
  slot->state = State::kReplied;
  outbox_.push(id.from, RpcOutMessage{RpcKind::kReply, id.slot, false, id.sequence});
}

bool RpcServer::view(WorkerId to, const RpcOutMessage& message, RpcMessageView* view) const {
  CHECK(to < peers_.size() && peers_[to] != nullptr && message.slot < Rpc::kCallsPerPeer);
  const Peer& peer = *peers_[to];
  const Slot& slot = peer.slots[message.slot];
  if (slot.sequence != message.sequence) return false;
  view->to_incarnation = peer.incarnation;
  if (message.kind == RpcKind::kWorking) return true;
  if (slot.state != State::kReplied) return false;
  view->bytes = slot.reply;
  view->method = slot.detail;
  view->code = slot.code;
  return true;
}

}  // namespace rdmacc
