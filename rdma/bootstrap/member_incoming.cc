#include "rdma/bootstrap/member.h"

// The channels that others open to a node, and what it answers them.

namespace rdmacc {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kGreetingNs = 5 * kSecondNs;
constexpr uint64_t kDeferredNs = 10 * kSecondNs;
// Of those that have not shown that they are members; more of them push out the oldest.
constexpr size_t kUnauthenticatedMax = 64;
constexpr int kAcceptsPerPump = 64;

Status not_node_0() { return Status(Code::kInvalidArgument, "only node 0 knows the members"); }

// What differs, as the config file names it; empty: nothing.
std::string difference(const Topology& theirs, const Topology& ours) {
  const struct {
    const char* name;
    uint64_t theirs, ours;
  } numbers[] = {{"nodes", theirs.nodes, ours.nodes},
                 {"threads_per_node", theirs.threads_per_node, ours.threads_per_node},
                 {"workers_max", theirs.workers_max, ours.workers_max},
                 {"memory_mb", theirs.region_bytes >> 20, ours.region_bytes >> 20}};
  for (const auto& number : numbers) {
    if (number.theirs == number.ours) continue;
    return std::string("a member with ") + number.name + " = " + std::to_string(number.theirs) +
           " in a cluster with " + std::to_string(number.ours);
  }
  return theirs.region_bytes == ours.region_bytes ? "" : "a member with another size of memory";
}

}  // namespace

void Member::accept_all(uint64_t now_ns) {
  for (int i = 0; i < kAcceptsPerPump; ++i) {
    SocketAddress peer;
    Descriptor socket = accept_from(listener_, &peer);
    if (socket.get() < 0) return;
    size_t unauthenticated = 0, members = 0;
    uint64_t oldest = 0;
    for (const auto& [id, in] : incoming_) {
      in.greeted ? ++members : ++unauthenticated;
      if (!in.greeted && oldest == 0) oldest = id;
    }
    if (unauthenticated >= kUnauthenticatedMax) {
      CHECK(oldest != 0);
      incoming_.at(oldest).channel->close(
          Status(Code::kUnavailable, "others came that have not greeted either"));
      lose_incoming(oldest);
    }
    const size_t members_max = size_t{config_.topology.workers_max} + config_.nodes.size();
    if (members >= members_max) {
      log_.say("refused " + peer.to_string() + ": there are as many members as can be");
      continue;
    }
    const uint64_t id = next_incoming_++;
    Incoming& in = incoming_[id];
    in.channel = std::make_unique<SecureChannel>(*tls_, std::move(socket), true, peer.to_string());
    in.requester.owner = id;
    in.requester.address = peer.to_string();
    in.deadline_ns = now_ns + kGreetingNs;
    watch(*in.channel, id, true, &in.interested_in_write);
  }
}

bool Member::drive_incoming(uint64_t id, uint64_t now_ns) {
  const auto found = incoming_.find(id);
  if (found == incoming_.end()) return false;
  Incoming& in = found->second;
  bool any = false;
  if (in.channel->state() != SecureChannel::State::kClosed) {
    any = in.channel->drive([&](const ControlFrame& frame) { on_incoming_frame(in, frame); });
  }
  if (in.channel->state() == SecureChannel::State::kClosed) {
    lose_incoming(id);
    settle(now_ns);
    return true;
  }
  watch(*in.channel, id, false, &in.interested_in_write);
  return any;
}

void Member::lose_incoming(uint64_t id) {
  const auto found = incoming_.find(id);
  CHECK(found != incoming_.end());
  const Incoming& in = found->second;
  if (!in.greeted) {
    log_.say("refused " + in.channel->peer() + ": " + in.channel->reason().message());
  } else if (in.requester.node != kNoNode) {
    log_.say("node " + std::to_string(in.requester.node) + " at " + in.channel->peer() +
             " is away: " + in.channel->reason().message());
  }
  std::erase_if(deferred_, [id](const Deferred& deferred) { return deferred.owner == id; });
  const NodeId node = in.greeted ? in.requester.node : kNoNode;
  incoming_.erase(found);
  if (registrar_ == nullptr) return;
  // It may have come back on another channel already.
  const bool another = std::any_of(incoming_.begin(), incoming_.end(), [node](const auto& other) {
    return node != kNoNode && other.second.greeted && other.second.requester.node == node;
  });
  if (node != kNoNode && !another) registrar_->node_down(node);
  registrar_->owner_gone(id);
}

void Member::on_incoming_frame(Incoming& in, const ControlFrame& frame) {
  const auto refuse = [&](const char* what) { in.channel->close(Status(Code::kCorrupt, what)); };
  if (!in.greeted) return on_hello(in, frame);
  switch (frame.header.type) {
    case ControlType::kHello:
      return refuse("it greets twice");
    case ControlType::kTable:
      return refuse("only node 0 sends the member table");
    case ControlType::kTableAck: {
      uint64_t version = 0;
      if (!decode_number(frame.payload, &version) || version != in.table_version) {
        return refuse("it has read what it was not told");
      }
      in.table_unread = false;
      return;
    }
    case ControlType::kReply:
    case ControlType::kError: {
      const auto found = in.fences_asked.find(frame.header.request);
      if (found == in.fences_asked.end() || frame.header.type == ControlType::kError) {
        return refuse("it answers what was not asked");
      }
      const Claim dead = found->second;
      in.fences_asked.erase(found);
      CHECK(registrar_ != nullptr);  // node 0 alone asks for fences
      registrar_->fenced(in.requester.node, dead);
      return;
    }
    default:
      break;
  }
  // The channel may be gone when a deferred answer comes; it is then not among incoming_.
  handle(in.requester, frame.header.type, frame.payload,
         [this, id = in.requester.owner, request = frame.header.request](Result<Bytes> answer) {
           const auto asker = incoming_.find(id);
           if (asker == incoming_.end()) return;
           if (answer.ok()) {
             asker->second.channel->send(ControlType::kReply, request, *answer);
           } else {
             asker->second.channel->send(ControlType::kError, request,
                                         encode_error(answer.status()));
           }
         });
}

void Member::on_hello(Incoming& in, const ControlFrame& frame) {
  CHECK(!in.greeted && is_node());
  HelloMessage hello;
  Status status;
  if (frame.header.type != ControlType::kHello || !decode(frame.payload, hello)) {
    status = Status(Code::kCorrupt, "its greeting does not parse");
  } else if (const std::string differs = difference(hello.topology, config_.topology);
             !differs.empty()) {
    status = Status(Code::kInvalidArgument, differs);
  } else if (hello.node != kNoNode &&
             (hello.node >= config_.nodes.size() || hello.node == own_node_)) {
    status = Status(Code::kInvalidArgument, "it cannot be node " + std::to_string(hello.node));
  }
  if (!status.ok()) {
    in.channel->send(ControlType::kError, frame.header.request, encode_error(status));
    return in.channel->close_after_words(status);
  }
  in.greeted = true;
  in.requester.node = hello.node;
  in.requester.process = hello.process;
  HelloReply reply;
  reply.node = own_node_;
  reply.clock = read_clock();
  if (registrar_ != nullptr) {
    if (hello.node != kNoNode) registrar_->node_up(hello.node, !hello.claims.empty());
    for (const ClaimProof& proof : hello.claims) {
      reply.kept.push_back(registrar_->attach(proof, in.requester.owner));
    }
  } else {
    reply.kept.assign(hello.claims.size(), false);
  }
  in.channel->send(ControlType::kReply, frame.header.request, encode(reply));
}

void Member::handle(Requester& requester, ControlType type, std::span<const std::byte> payload,
                    const Respond& respond) {
  const auto malformed = [&] { respond(Status(Code::kCorrupt, "the request does not parse")); };
  switch (type) {
    case ControlType::kClaim: {
      uint64_t thread = 0;
      if (!decode_number(payload, &thread) || thread > kNoThread) return malformed();
      if (registrar_ == nullptr) return respond(not_node_0());
      return handle_claim(requester, static_cast<uint16_t>(thread), respond);
    }
    case ControlType::kLeave: {
      ClaimProof proof;
      if (!decode(payload, proof)) return malformed();
      if (registrar_ == nullptr) return respond(not_node_0());
      registrar_->leave(proof.claim, requester.owner);
      deferred_.push_back(
          Deferred{requester.owner, proof, 0, monotonic_now_ns() + kDeferredNs, respond});
      return;
    }
    case ControlType::kPresent:
      if (!decode(payload, requester.presented)) return malformed();
      return respond(Bytes());
    case ControlType::kExchange:
      return respond(handle_exchange(requester, payload));
    case ControlType::kPing:
      return respond(encode(read_clock()));
    default:
      return malformed();
  }
}

void Member::handle_claim(Requester& requester, uint16_t thread, const Respond& respond) {
  CHECK(registrar_ != nullptr);
  Result<std::optional<ClaimProof>> granted = std::optional<ClaimProof>();
  if (thread == kNoThread) {
    Result<ClaimProof> claim = registrar_->claim(requester.owner, requester.process);
    if (!claim.ok()) return respond(claim.status());
    granted = std::optional<ClaimProof>(*claim);
  } else if (requester.node == kNoNode) {
    return respond(Status(Code::kInvalidArgument, "a coordinator is no node's thread"));
  } else {
    granted = registrar_->claim_node(requester.node, thread, requester.owner, requester.process);
    if (!granted.ok()) return respond(granted.status());
  }
  if (!granted->has_value()) {
    deferred_.push_back(Deferred{
        requester.owner, {{kNoWorker, 0}, {}}, thread, monotonic_now_ns() + kDeferredNs, respond});
    return;
  }
  // A claimant that has its claim asks the others next: they are told first.
  tell_tables();
  respond(encode(**granted));
}

Result<Membership::Bytes> Member::handle_exchange(const Requester& requester,
                                                  std::span<const std::byte> payload) {
  ExchangeMessage message;
  if (!decode(payload, message)) return Status(Code::kCorrupt, "the request does not parse");
  const auto handler = handlers_.find(static_cast<Topic>(message.topic));
  if (handler == handlers_.end()) {
    return Status(Code::kUnavailable, "this node does not talk about that");
  }
  Peer peer;
  peer.address = requester.address;
  if (&requester == &self_) {
    for (const ClaimProof& own : claims_) peer.claims.push_back(own.claim);
  } else if (registrar_ != nullptr) {
    peer.claims = registrar_->claims_of(requester.owner);
  } else {
    // Node 0 has told the token to the claimant and to this node.
    for (const ClaimProof& proof : requester.presented) {
      const WorkerId worker = proof.claim.worker;
      // Workers that are not there have the incarnation 0, and no token.
      if (worker < config_.topology.workers_max && proof.claim.incarnation != 0 &&
          incarnations_[worker].load() == proof.claim.incarnation &&
          same_secret(tokens_[worker], proof.token)) {
        peer.claims.push_back(proof.claim);
      }
    }
  }
  Result<Bytes> answer = handler->second(peer, message.bytes);
  CHECK(!answer.ok() || answer->size() <= kMessageBytesMax);
  return answer;
}

void Member::tell_tables() {
  CHECK(registrar_ != nullptr);
  for (auto& [id, in] : incoming_) {
    // One message at a time: a process that sleeps does not fill its socket.
    if (!in.greeted || in.table_unread || in.table_version >= registrar_->version()) continue;
    const bool with_tokens = in.requester.node != kNoNode;
    const TableMessage message = registrar_->changes_since(in.table_version, with_tokens);
    in.table_version = message.version;
    in.table_unread = true;
    in.channel->send(ControlType::kTable, 0, encode(message));
  }
}

void Member::settle(uint64_t now_ns) {
  if (registrar_ == nullptr) return;
  tell_tables();
  for (auto& [id, in] : incoming_) {
    if (!in.greeted || in.requester.node == kNoNode) continue;
    for (const Claim& dead : registrar_->take_fences(in.requester.node)) {
      const uint32_t request = in.next_request++;
      in.fences_asked.emplace(request, dead);
      in.channel->send(ControlType::kFence, request, encode(dead));
    }
  }
  std::vector<Deferred> waiting = std::exchange(deferred_, {});
  for (Deferred& each : waiting) {
    if (now_ns > each.deadline_ns) {
      each.respond(Status(Code::kUnavailable, "a node is out of reach"));
    } else if (each.leaving.claim.worker != kNoWorker) {
      if (registrar_->leaving(each.leaving.claim)) {
        deferred_.push_back(std::move(each));
      } else {
        each.respond(Bytes());
      }
    } else if (each.owner == self_.owner) {
      handle_claim(self_, each.thread, each.respond);
    } else if (incoming_.contains(each.owner)) {
      handle_claim(incoming_.at(each.owner).requester, each.thread, each.respond);
    }
  }
}

ClockReading Member::read_clock() {
  ClockReading reading;
  if (registrar_ == nullptr) return reading;
  reading.boot_id = process_.boot_id;
  reading.epoch_ns = registrar_->epoch_ns();
  reading.now_ns = clock_.now_ns();
  reading.memory_id = registrar_->memory_id();
  return reading;
}

}  // namespace rdmacc
