#include "rdma/bootstrap/member.h"

// The channels that a process opens to nodes.

namespace rdmacc {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kGreetingNs = 5 * kSecondNs;
constexpr uint64_t kBackOffNsMin = 5'000'000, kBackOffNsMax = kSecondNs;
// How often it is compared: an estimate gets worse with its age, and leases by the clock live of
// what is left (engine/storage/layout/lease_word.h).
constexpr uint64_t kClockNs = kSecondNs / 4;

}  // namespace

// True if there is a channel, perhaps still being made; false while it is too early to try again.
bool Member::connect_to(NodeId node, uint64_t now_ns) {
  CHECK(node < outgoing_.size() && node != own_node_);
  Outgoing& out = outgoing_[node];
  if (out.channel != nullptr) return true;
  if (now_ns < out.retry_at_ns) return false;
  Result<Descriptor> socket = start_connect(addresses_[node]);
  if (!socket.ok()) {
    lose_outgoing(node, now_ns);
    return false;
  }
  out.channel = std::make_unique<SecureChannel>(*tls_, std::move(*socket), false,
                                                addresses_[node].to_string());
  out.greeted = out.presented = false;
  out.deadline_ns = now_ns + kGreetingNs;
  HelloMessage hello;
  hello.topology = config_.topology;
  hello.node = own_node_;
  hello.process = process_;
  if (node == 0) hello.claims = claims_;
  out.greeted_with = hello.claims;
  out.asked_ns = now_ns;
  out.channel->send(ControlType::kHello, 0, encode(hello));
  watch(*out.channel, node, true, &out.interested_in_write);
  return true;
}

void Member::ask(NodeId node, ControlType type, std::span<const std::byte> payload, Answer answer) {
  if (node == own_node_) return handle(self_, type, payload, answer);
  if (node == 0 && memory_lost_) return answer(memory_lost());
  if (!connect_to(node, monotonic_now_ns())) {
    return answer(Status(outgoing_[node].why_code, "node " + std::to_string(node) + " at " +
                                                       addresses_[node].to_string() + ": " +
                                                       outgoing_[node].why));
  }
  Outgoing& out = outgoing_[node];
  if (type == ControlType::kExchange && node != 0 && !out.presented) {
    out.presented = true;
    const uint32_t request = out.next_request++;
    out.asked.emplace(request, [](const Result<Bytes>&) {});
    out.channel->send(ControlType::kPresent, request, encode(claims_));
  }
  const uint32_t request = out.next_request++;
  out.asked.emplace(request, std::move(answer));
  out.channel->send(type, request, payload);
}

bool Member::drive_outgoing(NodeId node, uint64_t now_ns) {
  CHECK(node < outgoing_.size());  // an id of watch()
  Outgoing& out = outgoing_[node];
  if (out.channel == nullptr) return false;
  bool any = false;
  if (out.channel->state() != SecureChannel::State::kClosed) {
    any = out.channel->drive([&](const ControlFrame& frame) { on_outgoing_frame(node, frame); });
  }
  if (out.channel->state() == SecureChannel::State::kClosed) {
    lose_outgoing(node, now_ns);
    return true;
  }
  watch(*out.channel, node, false, &out.interested_in_write);
  return any;
}

void Member::lose_outgoing(NodeId node, uint64_t now_ns) {
  CHECK(node < outgoing_.size());
  Outgoing& out = outgoing_[node];
  out.why = "it cannot be reached";
  out.why_code = Code::kUnavailable;
  if (out.channel != nullptr) {
    out.why = out.channel->reason().message();
    // It has said that this will not do; asking again is of no use.
    if (out.channel->reason().code() == Code::kInvalidArgument) {
      out.why_code = Code::kInvalidArgument;
    }
    log_.say("channel to node " + std::to_string(node) + " at " + out.channel->peer() +
             " ended: " + out.why);
  }
  const bool was_greeted = out.greeted;
  out.channel.reset();
  out.greeted = out.presented = false;
  out.back_off_ns =
      was_greeted ? kBackOffNsMin : std::clamp(2 * out.back_off_ns, kBackOffNsMin, kBackOffNsMax);
  out.retry_at_ns = now_ns + out.back_off_ns;
  const std::map<uint32_t, Answer> unanswered = std::exchange(out.asked, {});
  const Status lost(out.why_code, "node " + std::to_string(node) + " at " +
                                      addresses_[node].to_string() + ": " + out.why);
  for (const auto& [request, answer] : unanswered) answer(lost);
  if (node != 0 || !was_greeted) return;
  // The other members are not known, but node 0 is down. (Its table comes with the next channel.)
  for (uint16_t t = 0; t < config_.topology.threads_per_node; ++t) {
    set_incarnation(config_.topology.worker_of(0, t), 0, nullptr);
  }
}

void Member::on_outgoing_frame(NodeId node, const ControlFrame& frame) {
  Outgoing& out = outgoing_[node];
  const auto refuse = [&](const char* what) { out.channel->close(Status(Code::kCorrupt, what)); };
  if (!out.greeted) return on_hello_reply(node, frame);
  switch (frame.header.type) {
    case ControlType::kReply:
    case ControlType::kError: {
      const auto found = out.asked.find(frame.header.request);
      if (found == out.asked.end()) return refuse("it answers what was not asked");
      const Answer answer = std::move(found->second);
      out.asked.erase(found);
      if (frame.header.type == ControlType::kError) return answer(decode_error(frame.payload));
      return answer(Bytes(frame.payload.begin(), frame.payload.end()));
    }
    case ControlType::kTable:
      if (node != 0) return refuse("only node 0 sends the member table");
      return on_table(frame);
    case ControlType::kFence: {
      Claim dead;
      if (node != 0 || !is_node() || !decode(frame.payload, dead) ||
          dead.worker >= config_.topology.workers_max) {
        return refuse("a fence that is none");
      }
      if (incarnations_[dead.worker].load() == dead.incarnation) {
        set_incarnation(dead.worker, 0, nullptr);
      }
      return out.channel->send(ControlType::kReply, frame.header.request, {});
    }
    default:
      return refuse("it asks what only members ask a node");
  }
}

void Member::on_hello_reply(NodeId node, const ControlFrame& frame) {
  CHECK(!outgoing_[node].greeted && outgoing_[node].channel != nullptr);
  Outgoing& out = outgoing_[node];
  HelloReply reply;
  if (frame.header.type == ControlType::kError) {
    return out.channel->close(decode_error(frame.payload));
  }
  if (frame.header.type != ControlType::kReply || !decode(frame.payload, reply) ||
      reply.kept.size() != out.greeted_with.size()) {
    return out.channel->close(Status(Code::kCorrupt, "its greeting does not parse"));
  }
  // Else this member's hello may have been led back to it, or the config files differ.
  if (reply.node != node) {
    return out.channel->close(
        Status(Code::kInvalidArgument, "it is node " + std::to_string(reply.node)));
  }
  out.greeted = true;
  out.back_off_ns = 0;
  if (node != 0) return;
  const bool other_memory = !clock_.counts(reply.clock);
  for (size_t i = 0; i < reply.kept.size(); ++i) {
    if (reply.kept[i] && !other_memory) continue;
    const Claim lost = out.greeted_with[i].claim;
    erase_claim(lost);
    if (incarnations_[lost.worker].load() == lost.incarnation) {
      set_incarnation(lost.worker, 0, nullptr);
    }
    log_.say("node 0 took worker " + std::to_string(lost.worker) + " of this process for dead");
  }
  if (other_memory && has_claimed_) {
    memory_lost_ = true;
    return out.channel->close(memory_lost());
  }
  if (other_memory) forget_memory();
  clock_.set(reply.clock, process_.boot_id, out.asked_ns, monotonic_now_ns());
  clock_asked_ns_ = monotonic_now_ns();
}

Status Member::memory_lost() {
  return Status(Code::kUnavailable, "node 0 has lost the memory that this process has joined");
}

// What was heard of it, before anything here was a part of it. Its workers have no access yet.
void Member::forget_memory() {
  CHECK(!has_claimed_ && claims_.empty());
  clock_.forget();
  for (WorkerId worker = 0; worker < incarnations_.size(); ++worker) {
    incarnations_[worker].store(0);
    tokens_[worker] = {};
  }
  version_.fetch_add(1);
}

void Member::on_table(const ControlFrame& frame) {
  CHECK(own_node_ != 0);
  TableMessage message;
  if (!decode(frame.payload, message)) {
    return outgoing_[0].channel->close(Status(Code::kCorrupt, "its table does not parse"));
  }
  for (const TableEntry& entry : message.entries) {
    if (entry.worker >= config_.topology.workers_max) {
      return outgoing_[0].channel->close(Status(Code::kCorrupt, "its table has no such worker"));
    }
    set_incarnation(entry.worker, entry.incarnation, is_node() ? &entry.token : nullptr);
  }
  outgoing_[0].channel->send(ControlType::kTableAck, 0, encode_number(message.version));
}

void Member::refresh_clock(uint64_t now_ns) {
  if (own_node_ == 0 || clock_.exact() || now_ns - clock_asked_ns_ < kClockNs) return;
  if (outgoing_[0].channel == nullptr || !outgoing_[0].greeted) return;
  clock_asked_ns_ = now_ns;
  ask(0, ControlType::kPing, {}, [this, now_ns](const Result<Bytes>& answer) {
    ClockReading reading;
    if (answer.ok() && decode(answer.value(), reading) && clock_.counts(reading)) {
      clock_.set(reading, process_.boot_id, now_ns, monotonic_now_ns());
    }
  });
}

}  // namespace rdmacc
