#include "rdma/rpc/rpc_server.h"

#include <utility>

namespace rdmacc {
namespace {

constexpr size_t kStatusTextBytesMax = 200;
constexpr MethodId kMethodsMax = 1024;
constexpr size_t kTakenMax = 1024;  // entries of the queue that are left in front of it
// What a slot keeps of a message's memory for the next call (R3).
constexpr size_t kKeptBytes = 8 * 1024;

void empty(Rpc::Bytes& bytes) {
  bytes.clear();
  if (bytes.capacity() > kKeptBytes) bytes = Rpc::Bytes();
}

Rpc::Bytes text_of(const Status& status) {
  const std::string& text = status.message();
  const auto* start = reinterpret_cast<const std::byte*>(text.data());
  return Rpc::Bytes(start, start + std::min(text.size(), kStatusTextBytesMax));
}

}  // namespace

RpcServer::RpcServer(Scheduler& scheduler, RpcOutbox& outbox, uint32_t payload_bytes)
    : scheduler_(scheduler), outbox_(outbox), payload_bytes_(payload_bytes) {}

void RpcServer::handle(MethodId method, Rpc::Handler handler) {
  CHECK(handler != nullptr && method < kMethodsMax);
  if (method >= handlers_.size()) handlers_.resize(method + size_t{1});
  CHECK(handlers_[method] == nullptr);
  handlers_[method] = std::move(handler);
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
    empty(slot.reply);
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
  waiting_.push_back({from, fragment.slot, peer->incarnation, slot.sequence});
  start_coroutines();
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

void RpcServer::start_coroutines() {
  while (waiting_.size() > first_waiting_ + coming_ &&
         scheduler_.spawn([this] { run(take_waiting()); })) {
    ++coming_;
  }
}

RpcServer::CallId RpcServer::take_waiting() {
  CHECK(coming_ > 0 && first_waiting_ < waiting_.size());
  --coming_;
  const CallId id = waiting_[first_waiting_++];
  if (first_waiting_ == waiting_.size()) {
    waiting_.clear();
    first_waiting_ = 0;
  } else if (first_waiting_ >= kTakenMax) {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(first_waiting_));
    first_waiting_ = 0;
  }
  return id;
}

void RpcServer::run(const CallId& id) {
  Slot* slot = find(id, State::kWaiting);
  if (slot == nullptr) return;  // the caller has gone
  if (scheduler_.endpoint().incarnation_of(id.from) != id.incarnation) return;
  slot->state = State::kRunning;
  Rpc::Bytes request = std::exchange(slot->request, {});
  Rpc::Bytes reply = std::exchange(slot->reply, {});
  CHECK(reply.empty());
  Status status;
  bool cancelled = slot->cancelled;
  CHECK(slot->handlers == nullptr);
  slot->handlers = &cancelled;
  starting_ = &cancelled;
  if (slot->method >= handlers_.size() || handlers_[slot->method] == nullptr) {
    status = Status(Code::kInvalidArgument, "unknown method " + std::to_string(slot->method));
  } else {
    status = handlers_[slot->method](id.from, request, reply);
  }
  // The handler may have yielded: look the slot up again.
  slot = find(id, State::kRunning);
  if (slot == nullptr) return;
  slot->handlers = nullptr;
  empty(request);
  slot->request = std::move(request);
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
