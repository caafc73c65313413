#include "rdma/rpc/rpc_client.h"

namespace rdmacc {
namespace {

// More of them say no more of a peer, and would take its slots from calls that wait.
constexpr uint32_t kOrphansMax = 4;

}  // namespace

RpcClient::RpcClient(Scheduler& scheduler, RpcOutbox& outbox, Rpc::Options options,
                     uint32_t payload_bytes, std::shared_ptr<const bool> alive)
    : scheduler_(scheduler),
      outbox_(outbox),
      options_(options),
      payload_bytes_(payload_bytes),
      alive_(std::move(alive)) {
  CHECK(options_.retry_us > 0 && options_.retry_us_max >= options_.retry_us);
}

RpcClient::Peer& RpcClient::peer_of(WorkerId to) {
  if (to >= peers_.size()) peers_.resize(to + size_t{1});
  if (peers_[to] == nullptr) {
    peers_[to] = std::make_unique<Peer>();
    // The lowest slots are used first: the callee keeps a reply for each that was ever used.
    for (uint32_t slot = Rpc::kCallsPerPeer; slot > 0; --slot) {
      peers_[to]->free.push_back(static_cast<uint8_t>(slot - 1));
    }
  }
  return *peers_[to];
}

void RpcClient::post(Rpc::Call& call, Completion& completion) {
  CHECK(call.to != kNoWorker && completion.outstanding > 0);
  call.status = Status();
  call.reply.clear();
  const uint32_t incarnation = scheduler_.endpoint().incarnation_of(call.to);
  const Waiting waiting{&call, &completion, incarnation};
  if (call.request.size() > kMaxMessageBytes) {
    return finish(waiting, Status(Code::kTooLarge, "request longer than a message may be"));
  }
  if (incarnation == 0) return finish(waiting, Status(Code::kUnavailable, "no such worker"));
  Peer& peer = peer_of(call.to);
  if (call.silence_us_max != 0 && peer.orphans >= kOrphansMax) {
    return finish(waiting, Status(Code::kTimeout, "the worker does not answer"));
  }
  if (peer.free.empty()) {
    peer.waiting.push_back(waiting);
  } else {
    start(peer, waiting);
  }
}

void RpcClient::finish(const Waiting& waiting, Status status) {
  waiting.call->status = std::move(status);
  waiting.completion->finish_one();
}

void RpcClient::start(Peer& peer, const Waiting& waiting) {
  const WorkerId to = waiting.call->to;
  CHECK(!peer.free.empty() && waiting.callee_incarnation != 0);
  const uint8_t index = peer.free.back();
  peer.free.pop_back();
  Slot& slot = peer.slots[index];
  CHECK(slot.call == nullptr);
  slot.call = waiting.call;
  slot.completion = waiting.completion;
  slot.callee_incarnation = waiting.callee_incarnation;
  ++slot.sequence;
  slot.accepted = slot.cancelled = false;
  slot.reply.clear();
  slot.timeout_us = options_.retry_us;
  const uint64_t now_us = scheduler_.recent_us();
  slot.heard_us = now_us;
  slot.deadline_us = now_us + slot.timeout_us;
  slot.active_at = active_.size();
  active_.push_back(Active{to, index});
  arm(next_look_us(slot, now_us));
  outbox_.push(to, RpcOutMessage{.kind = RpcKind::kRequest,
                                 .slot = index,
                                 .first_only = false,
                                 .sequence = slot.sequence,
                                 .patient = slot.call->patient});
}

void RpcClient::end(Active ended, Status status) {
  Peer& peer = *peers_[ended.to];
  Slot& slot = peer.slots[ended.slot];
  CHECK(slot.call != nullptr && slot.active_at < active_.size());
  const Waiting done{slot.call, slot.completion, slot.callee_incarnation};
  slot.call = nullptr;
  slot.completion = nullptr;
  const bool wanted = slot.orphan == nullptr;
  if (!wanted) --peer.orphans;
  slot.orphan = nullptr;
  const Active last = active_.back();
  active_[slot.active_at] = last;
  peers_[last.to]->slots[last.slot].active_at = slot.active_at;
  active_.pop_back();
  peer.free.push_back(ended.slot);
  if (wanted) finish(done, std::move(status));
  // The next in line; it was made to the process that was there when it was posted.
  while (!peer.waiting.empty() && !peer.free.empty()) {
    const Waiting next = peer.waiting.front();
    peer.waiting.pop_front();
    if (scheduler_.endpoint().incarnation_of(ended.to) == next.callee_incarnation) {
      start(peer, next);
    } else {
      finish(next, Status(Code::kUnavailable, "the worker ended before it was called"));
    }
  }
}

void RpcClient::on_reply(WorkerId from, const RpcDatagramHeader& header,
                         const RpcFragmentHeader& fragment, std::span<const std::byte> payload) {
  if (from >= peers_.size() || peers_[from] == nullptr) return;
  Slot& slot = peers_[from]->slots[fragment.slot];
  if (slot.call == nullptr || slot.sequence != fragment.sequence ||
      slot.callee_incarnation != header.from_incarnation) {
    return;  // of a call that has ended
  }
  slot.accepted = true;
  slot.heard_us = scheduler_.recent_us();
  if (fragment.kind == RpcKind::kWorking) return;
  Rpc::Bytes& reply = slot.call->reply;
  if (slot.reply.add(fragment, payload, payload_bytes_, reply) != RpcAssembly::Outcome::kComplete) {
    return;
  }
  Status status;
  if (fragment.code != Code::kOk) {
    status = Status(fragment.code,
                    std::string(reinterpret_cast<const char*>(reply.data()), reply.size()),
                    fragment.method);
    reply.clear();
  }
  end(Active{from, fragment.slot}, std::move(status));
}

bool RpcClient::view(WorkerId to, const RpcOutMessage& message, RpcMessageView* view) const {
  CHECK(to < peers_.size() && peers_[to] != nullptr && message.slot < Rpc::kCallsPerPeer);
  const Slot& slot = peers_[to]->slots[message.slot];
  if (slot.call == nullptr || slot.sequence != message.sequence) return false;
  if (message.kind == RpcKind::kRequest) view->bytes = slot.call->request;
  view->to_incarnation = slot.callee_incarnation;
  view->method = slot.call->method;
  return true;
}

void RpcClient::give_up(Peer& peer, Slot& slot, uint64_t now_us) {
  if (slot.orphan != nullptr || slot.call->silence_us_max == 0) return;
  const bool cancelled = slot.call->cancelled != nullptr && *slot.call->cancelled;
  if (!cancelled && now_us - slot.heard_us < slot.call->silence_us_max) return;
  const Waiting caller{slot.call, slot.completion, slot.callee_incarnation};
  ++peer.orphans;
  slot.orphan = std::make_unique<Rpc::Call>();
  slot.orphan->to = slot.call->to;
  slot.orphan->method = slot.call->method;
  slot.orphan->request = slot.call->request;
  slot.call = slot.orphan.get();
  slot.completion = nullptr;
  slot.reply.clear();
  caller.call->reply.clear();
  finish(caller, cancelled ? Status(Code::kCancelled)
                           : Status(Code::kTimeout, "the worker does not answer"));
}

uint64_t RpcClient::next_look_us(const Slot& slot, uint64_t now_us) const {
  if (slot.call->cancelled == nullptr || slot.cancelled) return slot.deadline_us;
  return std::min(slot.deadline_us, now_us + Rpc::kCancelLookUs);
}

void RpcClient::arm(uint64_t deadline_us) {
  if (deadline_us >= armed_us_) return;
  armed_us_ = deadline_us;
  scheduler_.call_at(deadline_us, [this, alive = alive_, deadline_us] {
    // An earlier deadline may have been armed, and have fired, since.
    if (*alive && armed_us_ == deadline_us) on_timer();
  });
}

void RpcClient::on_timer() {
  armed_us_ = UINT64_MAX;
  Endpoint& endpoint = scheduler_.endpoint();
  const uint64_t now_us = endpoint.now_us();
  const bool dead = endpoint.taken_for_dead();
  // end() moves the last one into the gap and may start new ones at the end: go backwards.
  for (size_t i = active_.size(); i > 0; --i) {
    if (i > active_.size()) continue;
    const Active active = active_[i - 1];
    Slot& slot = peers_[active.to]->slots[active.slot];
    CHECK(slot.call != nullptr);  // end() takes it off active_
    const bool* const cancelled = slot.call->cancelled;
    if (cancelled != nullptr && *cancelled && !slot.cancelled) {
      slot.cancelled = true;
      outbox_.push(active.to, RpcOutMessage{RpcKind::kCancel, active.slot, false, slot.sequence});
    }
    give_up(*peers_[active.to], slot, now_us);
    if (slot.deadline_us > now_us) continue;
    if (dead || endpoint.incarnation_of(active.to) != slot.callee_incarnation) {
      end(active, Status(Code::kUnavailable, "the worker ended during the call"));
      continue;
    }
    ++retransmissions_;
    outbox_.push(active.to,
                 RpcOutMessage{RpcKind::kRequest, active.slot, slot.accepted, slot.sequence});
    if (slot.cancelled) {
      outbox_.push(active.to, RpcOutMessage{RpcKind::kCancel, active.slot, false, slot.sequence});
    }
    slot.timeout_us = std::min(slot.timeout_us * 2, options_.retry_us_max);
    slot.deadline_us = now_us + slot.timeout_us;
  }
  uint64_t next_us = UINT64_MAX;
  for (const Active& active : active_) {
    next_us = std::min(next_us, next_look_us(peers_[active.to]->slots[active.slot], now_us));
  }
  if (next_us != UINT64_MAX) arm(next_us);
}

}  // namespace rdmacc
