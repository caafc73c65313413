#include "rdma/tcp/tcp_server_connection.h"

#include <sys/epoll.h>

#include <algorithm>

namespace rdmacc {
namespace {

// A worker that does not read its replies is not read from; datagrams are lost before that.
constexpr size_t kUnsentBytesMax = 1 << 20;
constexpr size_t kDatagramUnsentBytesMax = 512 * 1024;

}  // namespace

TcpServerConnection::TcpServerConnection(Host& host, Descriptor socket, std::string peer,
                                         uint64_t event_id, uint64_t now_us)
    : host_(host),
      connection_(std::move(socket)),
      peer_(std::move(peer)),
      event_id_(event_id),
      came_us_(now_us) {}

bool TcpServerConnection::over(uint64_t now_us) const {
  if (state_ != State::kOpen) return now_us - came_us_ > kGreetingUsMax;
  return admitted_.guard->fenced();
}

bool TcpServerConnection::watch(bool fresh) {
  epoll_event event = {};
  event.events = (watching_read_ ? EPOLLIN : 0u) | (watching_write_ ? EPOLLOUT : 0u);
  event.data.u64 = event_id_;
  if (epoll_ctl(host_.epoll, fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection_.fd(), &event) ==
      0) {
    return true;
  }
  return end("epoll_ctl");
}

bool TcpServerConnection::flush() {
  if (!connection_.flush()) return end("the connection ended");
  const bool read = connection_.unsent() <= kUnsentBytesMax;
  const bool write = connection_.unsent() > 0;
  if (read == watching_read_ && write == watching_write_) return true;
  watching_read_ = read;
  watching_write_ = write;
  return watch(false);
}

bool TcpServerConnection::send(std::span<const std::byte> datagram) {
  CHECK(state_ == State::kOpen);
  if (connection_.unsent() > kDatagramUnsentBytesMax) return false;
  TcpFrameHeader header{};
  header.bytes = static_cast<uint32_t>(datagram.size());
  header.type = TcpFrameType::kDatagram;
  std::byte* frame = connection_.extend(sizeof(header) + tcp_filled(datagram.size()));
  std::memcpy(frame, &header, sizeof(header));
  std::memcpy(frame + sizeof(header), datagram.data(), datagram.size());
  return true;
}

bool TcpServerConnection::on_event(uint32_t events, const Deliver& deliver) {
  if ((events & EPOLLOUT) != 0 && !flush()) return false;
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) == 0 || !watching_read_) return true;
  const bool alive = connection_.fill();
  if (state_ != State::kOpen && !greet()) return false;
  bool malformed = false;
  while (state_ == State::kOpen) {
    const auto frame = next_tcp_frame(connection_.arrived(), &malformed);
    if (malformed) return end("what it says does not parse");
    if (!frame) break;
    active_ = true;
    if (frame->header.type == TcpFrameType::kChain) {
      if (!carry_out(*frame)) return false;
    } else if (frame->header.type == TcpFrameType::kDatagram) {
      if (admitted_.guard->fenced()) return end("it was fenced");
      deliver(admitted_.claim.worker, frame->payload);
    } else {
      return end("it answers what was not asked");
    }
    connection_.consume(frame->frame_bytes);
  }
  return alive ? true : end("the connection ended");
}

bool TcpServerConnection::greet() {
  if (state_ == State::kHello) {
    if (connection_.arrived().size() < sizeof(hello_)) return true;
    CHECK(read_exactly(connection_.arrived().first(sizeof(hello_)), hello_));
    connection_.consume(sizeof(hello_));
    if (hello_.magic != kTcpMagic) return end("it does not greet");
    if (hello_.version != kTcpVersion) return end("it has another version");
    std::optional<TcpAdmission::Admitted> admitted = host_.admission.admit(hello_.ticket);
    if (!admitted) return end("it has no ticket");
    admitted_ = std::move(*admitted);
    nonce_ = random_secret<RandomToken>();
    connection_.append(
        bytes_of(TcpChallenge{nonce_, tcp_proof_of_node(admitted_.key, hello_, nonce_)}));
    if (!flush()) return false;
    state_ = State::kProof;
  }
  TcpProof proof;
  if (connection_.arrived().size() < sizeof(proof)) return true;
  CHECK(read_exactly(connection_.arrived().first(sizeof(proof)), proof));
  connection_.consume(sizeof(proof));
  const bool proven = same_secret(proof.proof, tcp_proof_of_dialler(admitted_.key, hello_, nonce_));
  admitted_.key.fill(0);
  if (!proven) return end("it does not know the key of its ticket");
  host_.cluster.progress->begin(admitted_.claim);
  state_ = State::kOpen;
  return true;
}

// Memory behind every page that is touched: else a full /dev/shm would be a signal here.
bool TcpServerConnection::back(const Verb& verb) {
  const uint64_t chunk_bytes = ShmRegions::kChunkBytes;
  const size_t last = (verb.remote_offset + verb.bytes - 1) / chunk_bytes;
  CHECK(verb.bytes > 0 && last < host_.backed.size());  // read_tcp_chain() has looked
  for (size_t chunk = verb.remote_offset / chunk_bytes; chunk <= last; ++chunk) {
    if (host_.backed[chunk]) continue;
    const uint64_t region_bytes = host_.cluster.topology().region_bytes;
    const uint64_t bytes = std::min(chunk_bytes, region_bytes - chunk * chunk_bytes);
    if (!host_.cluster.regions->back(host_.cluster.own_node, chunk * chunk_bytes, bytes).ok()) {
      return false;
    }
    host_.backed[chunk] = true;
  }
  return true;
}

bool TcpServerConnection::carry_out(const TcpFrame& frame) {
  CHECK(state_ == State::kOpen && host_.region != nullptr);
  size_t reply_bytes = 0;
  const size_t count = frame.header.verbs;
  if (!read_tcp_chain(frame, host_.cluster.topology().region_bytes, host_.verbs, &reply_bytes)) {
    return end("it sent verbs that may not be");
  }
  for (size_t i = 0; i < count; ++i) {
    if (!back(host_.verbs[i])) return end("there is no memory for what it wants to touch");
  }
  std::byte* reply = nullptr;
  const bool wants_reply = (frame.header.flags & kTcpWantsReply) != 0;
  if (!wants_reply && reply_bytes > 0) return end("it does not want what it reads");
  if (wants_reply) {
    TcpFrameHeader header{};
    header.bytes = static_cast<uint32_t>(reply_bytes);
    header.type = TcpFrameType::kReply;
    header.sequence = frame.header.sequence;
    reply = connection_.extend(sizeof(header) + reply_bytes);
    std::memcpy(reply, &header, sizeof(header));
    reply += sizeof(header);
  }
  if (!admitted_.guard->enter()) return end("it was fenced");
  // A chain that is not waited for may come again, on another connection: it goes on where it
  // ended.
  TcpProgress& progress = *host_.cluster.progress;
  const WorkerId worker = admitted_.claim.worker;
  const uint64_t sequence = frame.header.sequence;
  const size_t first = wants_reply ? 0 : std::min<size_t>(progress.done(worker, sequence), count);
  for (size_t i = first; i < count; ++i) {
    Verb& verb = host_.verbs[i];
    if (verb.opcode != Opcode::kWrite) {
      verb.local = reply;
      reply += verb.bytes;
    }
    if (host_.delays != nullptr) host_.delays->stall_before({host_.verbs.data(), count}, i);
    host_.cpu.carry_out(verb, host_.region);
    if (!wants_reply) progress.note(worker, sequence, static_cast<uint32_t>(i + 1));
  }
  admitted_.guard->exit();
  return true;
}

}  // namespace rdmacc
