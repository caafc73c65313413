#include "rdma/verbs/verbs_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rdmacc {
namespace {

constexpr uint32_t kSoftRoceVendor = 0xFFFFFF;

// May the device, left alone, carry `verb` out before one of `earlier` of its chain has had its
// effect, so that it makes a difference?
bool may_overtake(std::span<const Verb> earlier, const Verb& verb) {
  if (verb.opcode == Opcode::kRead) return false;
  for (const Verb& other : earlier) {
    if (other.opcode == Opcode::kWrite) continue;
    if (verb.opcode == Opcode::kWrite) return true;
    if (other.opcode != Opcode::kRead) continue;
    const uint64_t into = verb.remote_offset - other.remote_offset;
    if (into < other.bytes) return true;
  }
  return false;
}

}  // namespace

VerbsConnection::VerbsConnection(const VerbsDevice& device, VerbsMemory& memory,
                                 const VerbsOptions& options, const Shape& shape)
    : device_(device),
      memory_(memory),
      options_(options),
      shape_(shape),
      signal_every_(options.send_queue_depth / 4),
      holds_fenced_(device.limits().vendor_id == kSoftRoceVendor) {}

Result<std::vector<VerbsQueuePairAddress>> VerbsConnection::prepare() {
  CHECK(!connected_ && idle());
  abandon();
  const VerbsReliableShape shape{shape_.completions, options_.send_queue_depth, kInlineBytesWanted,
                                 0};
  for (uint16_t i = 0; i < options_.queue_pairs_per_node; ++i) {
    Result<VerbsHandle<ibv_qp>> made = make_reliable(device_, shape);
    if (!made.ok()) {
      abandon();
      return made.status();
    }
    addresses_.push_back(new_address_of(made->get()));
    queue_pairs_.push_back(std::move(*made));
  }
  return addresses_;
}

Status VerbsConnection::connect(const VerbsAnswer& answer) {
  if (answer.queue_pairs.size() != queue_pairs_.size() || !answer.covers(shape_.region_bytes)) {
    return Status(Code::kCorrupt, "node " + std::to_string(shape_.node) +
                                      " answered with other queue pairs or another region");
  }
  for (size_t i = 0; i < queue_pairs_.size(); ++i) {
    const VerbsPeerQueue peer{answer.header.port, answer.queue_pairs[i],
                              answer.header.reads_in_flight};
    RDMACC_RETURN_IF_ERROR(
        connect_reliable(device_, queue_pairs_[i].get(), addresses_[i], peer, options_));
  }
  domains_ = answer.domains;
  inline_bytes_ = inline_bytes_of(queue_pairs_.front().get());
  posted_ = retired_ = last_signalled_ = last_unacknowledged_ = 0;
  turn_ = chains_of_turn_ = 0;
  turn_ends_ = false;
  connected_ = true;
  return Status();
}

void VerbsConnection::abandon() {
  connected_ = false;
  queue_pairs_.clear();
  addresses_.clear();
  ++generation_;
}

const VerbsDomainKey& VerbsConnection::domain_at(uint64_t offset) const {
  for (const VerbsDomainKey& domain : domains_) {
    if (offset - domain.offset < domain.bytes) return domain;
  }
  CHECK(!"a verb beyond the region");
  return domains_.front();
}

void VerbsConnection::translate(const Verb& verb, uint64_t done, const VerbsDomainKey& domain,
                                uint64_t bytes, Request* request) {
  const uint64_t offset = verb.remote_offset + done;
  ibv_send_wr& work = request->work;
  request->local.addr = reinterpret_cast<uintptr_t>(verb.local) + done;
  request->local.length = static_cast<uint32_t>(bytes);
  work.num_sge = 1;
  switch (verb.opcode) {
    case Opcode::kRead:
    case Opcode::kWrite:
      work.opcode = verb.opcode == Opcode::kRead ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
      work.wr.rdma.remote_addr = offset;
      work.wr.rdma.rkey = domain.key;
      break;
    case Opcode::kCompareSwap:
    case Opcode::kFetchAdd:
      CHECK(bytes == 8);
      work.opcode = verb.opcode == Opcode::kCompareSwap ? IBV_WR_ATOMIC_CMP_AND_SWP
                                                        : IBV_WR_ATOMIC_FETCH_AND_ADD;
      work.wr.atomic.remote_addr = offset;
      work.wr.atomic.rkey = domain.key;
      work.wr.atomic.compare_add =
          verb.opcode == Opcode::kCompareSwap ? verb.compare : verb.operand;
      work.wr.atomic.swap = verb.operand;
      break;
  }
  if (verb.opcode == Opcode::kWrite && bytes <= inline_bytes_) {
    work.send_flags |= IBV_SEND_INLINE;
  } else {
    request->local.lkey = memory_.key_of(static_cast<const std::byte*>(verb.local) + done, bytes);
  }
}

// A verb that crosses from one domain to the next is cut there: they have different keys.
void VerbsConnection::add(const Verb& verb, bool fenced) {
  for (uint64_t done = 0; done < verb.bytes;) {
    const VerbsDomainKey& domain = domain_at(verb.remote_offset + done);
    const uint64_t rest_of_domain = domain.offset + domain.bytes - verb.remote_offset - done;
    const uint64_t bytes = std::min<uint64_t>(verb.bytes - done, rest_of_domain);
    Request& request = queued_.emplace_back();
    std::memset(&request, 0, sizeof(request));
    request.held = fenced && holds_fenced_;
    if (fenced && !holds_fenced_) request.work.send_flags |= IBV_SEND_FENCE;
    translate(verb, done, domain, bytes, &request);
    done += bytes;
  }
}

void VerbsConnection::ring(std::span<const Verb> chain, Completion* completion) {
  CHECK(connected_ && !chain.empty());
  size_t since = 0;           // the last fence
  bool overtakeable = false;  // anything since then but WRITEs
  for (size_t i = 0; i < chain.size(); ++i) {
    const bool fenced = overtakeable && may_overtake(chain.subspan(since, i - since), chain[i]);
    if (fenced) since = i;
    overtakeable = (overtakeable && !fenced) || chain[i].opcode != Opcode::kWrite;
    add(chain[i], fenced);
  }
  queued_.back().last = true;
  queued_.back().completion = completion;
  post();
}

// May anything be posted now? Lets the next queue pair have its turn where it is due.
bool VerbsConnection::next_turn() {
  if (queue_pairs_.size() == 1) return true;
  const bool nothing_in_flight = posted_ == retired_;
  if (turn_ends_ && !nothing_in_flight) return false;
  if (turn_ends_ || (nothing_in_flight && chains_of_turn_ > 0)) {
    turn_ = (turn_ + 1) % queue_pairs_.size();
    chains_of_turn_ = 0;
    turn_ends_ = false;
  }
  return true;
}

// Counts the request, which is about to be posted.
bool VerbsConnection::signalled(const Request& request) {
  ++posted_;
  if (request.last && queue_pairs_.size() > 1 && ++chains_of_turn_ >= kChainsPerTurn) {
    turn_ends_ = true;
  }
  const bool waited_for = request.asks || (request.last && request.completion != nullptr);
  if (!waited_for && !turn_ends_ && posted_ - last_signalled_ < signal_every_) return false;
  last_signalled_ = posted_;
  return true;
}

void VerbsConnection::post() {
  if (!connected_ || queued_.empty() || !next_turn()) return;
  const uint64_t room = options_.send_queue_depth - (posted_ - retired_);
  const size_t limit = std::min<uint64_t>(room, queued_.size());
  size_t count = 0;
  Request* before = nullptr;
  while (count < limit && !turn_ends_) {
    Request& request = queued_[count];
    if (request.held && posted_ != retired_) break;
    ++count;
    if (count < queued_.size() && queued_[count].held) request.asks = true;
    if (signalled(request)) request.work.send_flags |= IBV_SEND_SIGNALED;
    request.work.wr_id = (static_cast<uint64_t>(shape_.node) << 48) |
                         (static_cast<uint64_t>(generation_) << 32) |
                         static_cast<uint32_t>(posted_);
    request.work.sg_list = &request.local;
    request.work.next = nullptr;
    if (before != nullptr) before->work.next = &request.work;
    before = &request;
    if (request.last && request.completion == nullptr) last_unacknowledged_ = posted_;
    if (request.last && request.completion != nullptr) {
      in_flight_.push_back({posted_, request.completion});
    }
  }
  if (count > 0) post_linked(count);
}

void VerbsConnection::post_linked(size_t count) {
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue_pairs_[turn_].get(), &queued_.front().work, &refused);
  queued_.erase(queued_.begin(), queued_.begin() + static_cast<ptrdiff_t>(count));
  if (error != 0) fail(std::string("ibv_post_send: ") + std::strerror(error));
}

void VerbsConnection::complete(const ibv_wc& work, std::vector<Completion*>& done) {
  CHECK(node_of(work) == shape_.node);
  if (!connected_ || static_cast<uint16_t>(work.wr_id >> 32) != generation_) return;
  if (work.status != IBV_WC_SUCCESS) {
    fail(std::string("completion with error: ") + ibv_wc_status_str(work.status));
    return;
  }
  // The low half of a number between retired_ and posted_.
  const uint64_t number = retired_ + static_cast<uint32_t>(static_cast<uint32_t>(work.wr_id) -
                                                           static_cast<uint32_t>(retired_));
  CHECK(number <= posted_);
  retired_ = number;
  while (!in_flight_.empty() && in_flight_.front().end <= retired_) {
    if (in_flight_.front().completion != nullptr) done.push_back(in_flight_.front().completion);
    in_flight_.pop_front();
  }
}

void VerbsConnection::fail(const std::string& why) {
  ++breaks_;
  complaint_ = "connection to node " + std::to_string(shape_.node) + " is broken: " + why;
  abandon();
  for (const InFlight& chain : in_flight_) {
    if (chain.completion != nullptr) failed_.push_back(chain.completion);
  }
  for (const Request& request : queued_) {
    if (request.last && request.completion != nullptr) failed_.push_back(request.completion);
  }
  lost_unacknowledged_ |= last_unacknowledged_ > retired_;
  for (const Request& request : queued_) {
    lost_unacknowledged_ |= request.last && request.completion == nullptr;
  }
  in_flight_.clear();
  queued_.clear();
  posted_ = retired_ = last_signalled_ = last_unacknowledged_ = 0;
}

std::vector<Completion*> VerbsConnection::take_failed() { return std::exchange(failed_, {}); }

void VerbsConnection::forget_waiters() {
  for (InFlight& chain : in_flight_) chain.completion = nullptr;
  for (Request& request : queued_) request.completion = nullptr;
  failed_.clear();
}

void VerbsConnection::ask_for_completion(std::byte* scratch) {
  if (!connected_ || posted_ == last_signalled_) return;
  const Verb verb{.opcode = Opcode::kRead, .bytes = 8, .remote_offset = 0, .local = scratch};
  add(verb, false);
  queued_.back().last = queued_.back().asks = true;
  post();
}

}  // namespace rdmacc
