#include "rdma/tcp/tcp_peer.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

namespace rdmacc {
namespace {

constexpr uint64_t kBackOffUsMin = 500, kBackOffUsMax = 100'000;
constexpr size_t kDatagramBacklogBytesMax = 1 << 20;
// A chain has to wait when a peer does not read; its callers bound how much there can be.
constexpr size_t kBacklogBytesMax = size_t{256} << 20;
constexpr uint64_t kLookUs = 50'000;

uint64_t now_us() { return monotonic_now_ns() / 1000; }

// Cuts what is longer than a piece, in the order in which its words are to be seen.
void cut(const Verb& verb, std::vector<Verb>& pieces) {
  if (verb.bytes <= kTcpPieceBytesMax) return pieces.push_back(verb);
  const uint32_t count = (verb.bytes + kTcpPieceBytesMax - 1) / kTcpPieceBytesMax;
  for (uint32_t i = 0; i < count; ++i) {
    const bool descending = verb.opcode == Opcode::kRead && verb.order == WordOrder::kDescending;
    const uint32_t start = (descending ? count - 1 - i : i) * kTcpPieceBytesMax;
    Verb piece = verb;
    piece.remote_offset += start;
    piece.local = static_cast<std::byte*>(verb.local) + start;
    piece.bytes = std::min(kTcpPieceBytesMax, verb.bytes - start);
    pieces.push_back(piece);
  }
}

uint32_t request_bytes(const Verb& verb) { return verb.opcode == Opcode::kWrite ? verb.bytes : 0; }
uint32_t reply_bytes(const Verb& verb) { return verb.opcode == Opcode::kWrite ? 0 : verb.bytes; }

}  // namespace

void TcpInbox::wake() {
  wake_requested.store(true, std::memory_order_seq_cst);
  if (!sleeping.load(std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  if (write(event.get(), &one, sizeof(one)) < 0) return;  // it is full: that wakes as well
}

TcpPeer::TcpPeer(TcpSelf& self, TcpWay& way, NodeId node, uint16_t thread)
    : self_(self),
      way_(way),
      node_(node),
      thread_(thread),
      worker_(self.cluster->topology().worker_of(node, thread)) {}

std::byte* TcpPeer::extend(size_t bytes) {
  if (state_ == State::kOpen) return connection_->extend(bytes);
  queued_.resize(queued_.size() + bytes);
  return queued_.data() + queued_.size() - bytes;
}

void TcpPeer::post(std::span<const Verb> chain, Completion* completion, uint64_t now) {
  pieces_.clear();
  for (const Verb& verb : chain) cut(verb, pieces_);
  for (size_t first = 0; first < pieces_.size();) {
    size_t end = first;
    uint32_t request = 0, reply = 0;
    do {
      request += request_bytes(pieces_[end]);
      reply += reply_bytes(pieces_[end]);
      ++end;
    } while (end < pieces_.size() && end - first < kTcpVerbsMax &&
             request + request_bytes(pieces_[end]) <= kTcpSegmentBytesMax &&
             reply + reply_bytes(pieces_[end]) <= kTcpSegmentBytesMax);
    append_frame({pieces_.data() + first, end - first},
                 end == pieces_.size() ? completion : nullptr, completion == nullptr, now);
    first = end;
  }
}

void TcpPeer::append_frame(std::span<const Verb> verbs, Completion* completion, bool passive,
                           uint64_t now) {
  CHECK(!verbs.empty() && verbs.size() <= kTcpVerbsMax);
  uint32_t written = 0, targets = 0;
  for (const Verb& verb : verbs) {
    written += request_bytes(verb);
    if (verb.opcode == Opcode::kWrite) continue;
    targets_.push_back({verb.local, verb.bytes});
    ++targets;
  }
  const bool replied = !passive || targets > 0;
  TcpFrameHeader header{};
  header.bytes = static_cast<uint32_t>(verbs.size() * sizeof(TcpVerb)) + written;
  CHECK(header.bytes <= kTcpFrameBytesMax);  // what the other side takes for malformed
  header.type = TcpFrameType::kChain;
  header.flags = replied ? kTcpWantsReply : 0;
  header.verbs = static_cast<uint16_t>(verbs.size());
  header.sequence = next_sequence_++;
  const size_t frame_bytes = sizeof(header) + header.bytes;
  std::byte* const frame = extend(frame_bytes);
  std::memcpy(frame, &header, sizeof(header));
  std::byte* to_verb = frame + sizeof(header);
  std::byte* to_bytes = to_verb + verbs.size() * sizeof(TcpVerb);
  for (const Verb& verb : verbs) {
    const TcpVerb sent{
        verb.remote_offset, verb.compare, verb.operand, verb.bytes, verb.opcode, verb.order, 0};
    std::memcpy(to_verb, &sent, sizeof(sent));
    to_verb += sizeof(sent);
    if (verb.opcode != Opcode::kWrite) continue;
    std::memcpy(to_bytes, verb.local, verb.bytes);
    to_bytes += verb.bytes;
  }
  pending_.push_back(Pending{header.sequence, completion, targets, replied, passive, now, {}});
  if (!replied) pending_.back().again.assign(frame, frame + frame_bytes);
}

bool TcpPeer::send(std::span<const std::byte> datagram) {
  const size_t backlog = state_ == State::kOpen ? connection_->unsent() : queued_.size();
  if (backlog > kDatagramBacklogBytesMax) return false;
  TcpFrameHeader header{};
  header.bytes = static_cast<uint32_t>(datagram.size());
  header.type = TcpFrameType::kDatagram;
  std::byte* const frame = extend(sizeof(header) + tcp_filled(datagram.size()));
  std::memcpy(frame, &header, sizeof(header));
  std::memcpy(frame + sizeof(header), datagram.data(), datagram.size());
  return true;
}

void TcpPeer::forget_completions() {
  for (Pending& each : pending_) each.completion = nullptr;
}

bool TcpPeer::owes() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const Pending& each) { return each.passive; });
}

void TcpPeer::confirm(uint64_t now) {
  if (!pending_.empty() && !pending_.back().passive) return;
  Verb verb{.opcode = Opcode::kRead, .bytes = 8, .remote_offset = 0, .local = &confirm_word_};
  append_frame({&verb, 1}, nullptr, false, now);
}

// ---- Dialling

void TcpPeer::ask(uint64_t now) {
  CHECK(state_ == State::kIdle && connection_ == nullptr);
  state_ = State::kAsking;
  if (dialling_us_ == 0) dialling_us_ = now;
  const TcpTicketRequest request{thread_, self_.claim.worker, self_.claim.incarnation,
                                 static_cast<uint16_t>(way_.lost), 0};
  clearing_ = way_.clearing = way_.lost;
  ++asked_;
  self_.cluster->membership->post(
      node_, Membership::Topic::kTcpEndpoint, bytes_of(request),
      [inbox = self_.inbox, worker = worker_, asked = asked_](Result<Membership::Bytes> answer) {
        {
          const std::lock_guard<std::mutex> lock(inbox->mutex);
          inbox->tickets.push_back({worker, asked, std::move(answer)});
          inbox->any.store(true);
        }
        inbox->wake();
      });
}

void TcpPeer::on_answer(uint64_t asked, const Result<Membership::Bytes>& answer) {
  if (state_ != State::kAsking || asked != asked_) return;
  TcpTicket ticket;
  const bool given = answer.ok() && read_exactly(answer.value(), ticket);
  if (given && clearing_) way_.lost = false;
  end_question();
  given ? dial(ticket) : retry_later();
}

void TcpPeer::end_question() {
  if (clearing_) way_.clearing = false;
  clearing_ = false;
}

void TcpPeer::retry_later() {
  state_ = State::kIdle;
  connection_.reset();
  back_off_us_ = std::clamp(2 * back_off_us_, kBackOffUsMin, kBackOffUsMax);
  retry_us_ = now_us() + back_off_us_;
}

void TcpPeer::dial(const TcpTicket& ticket) {
  CHECK(state_ == State::kAsking && connection_ == nullptr);
  ticket_ = ticket;
  SocketAddress address = self_.cluster->addresses[node_];
  address.set_port(ticket.port);
  Result<Descriptor> socket = start_connect(address);
  if (!socket.ok()) return retry_later();
  connection_ = std::make_unique<TcpConnection>(std::move(*socket));
  state_ = State::kConnecting;
  hello_ = TcpHello{kTcpMagic, kTcpVersion, ticket.id, random_secret<RandomToken>()};
  connection_->append(bytes_of(hello_));
  watching_write_ = true;
  watch(true);
}

void TcpPeer::watch(bool fresh) {
  epoll_event event = {};
  event.events = EPOLLIN | (watching_write_ ? EPOLLOUT : 0u);
  event.data.u64 = worker_;
  if (epoll_ctl(self_.epoll, fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection_->fd(), &event) !=
      0) {
    lose(Status::from_errno("epoll_ctl").message());
  }
}

void TcpPeer::flush() {
  if (state_ == State::kIdle || state_ == State::kAsking || state_ == State::kConnecting) return;
  CHECK(connection_ != nullptr);
  if (connection_->unsent() > kBacklogBytesMax) return lose("it does not read");
  if (!connection_->flush()) return lose("the connection ended");
  const bool want = connection_->unsent() > 0;
  if (want == watching_write_) return;
  watching_write_ = want;
  watch(false);
}

bool TcpPeer::on_challenge() {
  CHECK(state_ == State::kGreeting);
  TcpChallenge challenge;
  if (connection_->arrived().size() < sizeof(challenge)) return false;
  CHECK(read_exactly(connection_->arrived().first(sizeof(challenge)), challenge));
  connection_->consume(sizeof(challenge));
  if (!same_secret(challenge.proof, tcp_proof_of_node(ticket_.key, hello_, challenge.nonce))) {
    self_.cluster->log->say("the process at the data port of node " + std::to_string(node_) +
                            " does not know its ticket");
    retry_later();
    return false;
  }
  connection_->append(
      bytes_of(TcpProof{tcp_proof_of_dialler(ticket_.key, hello_, challenge.nonce)}));
  connection_->append(queued_);
  queued_.clear();
  queued_.shrink_to_fit();
  ticket_ = TcpTicket{};
  peer_incarnation_ = self_.cluster->membership->incarnation_of(worker_);
  state_ = State::kOpen;
  dialling_us_ = back_off_us_ = 0;
  return true;
}

bool TcpPeer::on_event(uint32_t events, const Deliver& deliver) {
  if (connection_ == nullptr) return false;
  if (state_ == State::kConnecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return false;
    if (!connect_outcome(connection_->socket()).ok()) {
      retry_later();
      return false;
    }
    state_ = State::kGreeting;
  }
  if ((events & EPOLLOUT) != 0) flush();
  if (connection_ == nullptr || (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0) return false;
  const bool alive = connection_->fill();
  bool any = false;
  if (state_ == State::kGreeting) on_challenge();
  if (state_ == State::kOpen) any = on_frames(deliver);
  if (!alive && connection_ != nullptr) {
    state_ == State::kOpen ? lose("the connection ended") : retry_later();
  }
  return any;
}

// ---- Chains under way

bool TcpPeer::on_frames(const Deliver& deliver) {
  bool any = false, malformed = false;
  while (state_ == State::kOpen) {
    const auto frame = next_tcp_frame(connection_->arrived(), &malformed);
    if (!frame) break;
    if (frame->header.type == TcpFrameType::kDatagram) {
      deliver(frame->payload);
    } else if (frame->header.type != TcpFrameType::kReply || !on_reply(*frame)) {
      malformed = true;
      break;
    }
    any = true;
    // A completion or datagram may have led to posts, never to the loss of the connection.
    connection_->consume(frame->frame_bytes);
  }
  if (malformed) lose("what it says does not parse");
  return any;
}

bool TcpPeer::on_reply(const TcpFrame& frame) {
  // Chains without a reply have been carried out before this one.
  while (!pending_.empty() && !pending_.front().replied) pending_.pop_front();
  if (pending_.empty() || pending_.front().sequence != frame.header.sequence) return false;
  const Pending done = std::move(pending_.front());
  CHECK(targets_.size() >= done.targets);
  std::span<const std::byte> rest = frame.payload;
  size_t wanted = 0;
  for (uint32_t i = 0; i < done.targets; ++i) wanted += targets_[i].bytes;
  if (wanted != rest.size()) return false;
  for (uint32_t i = 0; i < done.targets; ++i) {
    const Target target = targets_.front();
    targets_.pop_front();
    std::memcpy(target.local, rest.data(), target.bytes);
    rest = rest.subspan(target.bytes);
  }
  pending_.pop_front();
  if (done.completion != nullptr) done.completion->finish_one();
  return true;
}

void TcpPeer::lose(const std::string& why) {
  if (state_ == State::kOpen) {
    self_.cluster->log->say("connection of worker " + std::to_string(self_.claim.worker) +
                            " to worker " + std::to_string(worker_) + " ended: " + why);
    lost_ = true;
  }
  lose_with_node();
}

void TcpPeer::lose_with_node() {
  way_.lost = true;
  end_question();
  connection_.reset();
  state_ = State::kIdle;
  ++asked_;  // a ticket under way does not count
  peer_incarnation_ = 0;
  fail_chains();
}

// What is not waited for is queued again, the rest fails.
void TcpPeer::fail_chains() {
  queued_.clear();
  targets_.clear();
  std::deque<Pending> ended;
  ended.swap(pending_);
  for (Pending& each : ended) {
    if (each.again.empty() || self_gone()) continue;
    queued_.insert(queued_.end(), each.again.begin(), each.again.end());
    pending_.push_back(std::move(each));
  }
  for (const Pending& each : ended) {
    if (each.completion == nullptr) continue;
    each.completion->failed = true;
    each.completion->finish_one();
  }
}

bool TcpPeer::self_gone() const {
  return self_.cluster->membership->incarnation_of(self_.claim.worker) != self_.claim.incarnation;
}

const TcpPeer::Pending* TcpPeer::first_waited() const {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [](const Pending& each) { return each.again.empty(); });
  return found == pending_.end() ? nullptr : &*found;
}

bool TcpPeer::tick(uint64_t now, uint64_t* next_us) {
  if (state_ == State::kIdle && idle()) return false;
  const uint32_t incarnation = self_.cluster->membership->incarnation_of(worker_);
  const Pending* waited = first_waited();
  if (state_ == State::kOpen) {
    *next_us = std::min(*next_us, now + kLookUs);
    if (incarnation != peer_incarnation_) {
      lose("its process ended");
    } else if (self_gone()) {
      lose("this worker was taken for dead");
    } else if (waited != nullptr && now > waited->posted_us + self_.cluster->options.chain_us_max) {
      lose("it does not carry out its verbs");
    } else {
      return false;
    }
    return true;
  }
  const bool too_long =
      dialling_us_ != 0 && now > dialling_us_ + self_.cluster->options.dial_us_max;
  if (incarnation == 0 || self_gone() || too_long) {
    dialling_us_ = 0;
    lose_with_node();
    retry_later();
    if (!idle()) *next_us = std::min(*next_us, retry_us_);
    return waited != nullptr;
  }
  if (state_ == State::kIdle && now >= retry_us_ && !way_.clearing) ask(now);
  *next_us = std::min(
      *next_us, state_ == State::kIdle ? std::max(retry_us_, now + kBackOffUsMin) : now + kLookUs);
  return false;
}

}  // namespace rdmacc
