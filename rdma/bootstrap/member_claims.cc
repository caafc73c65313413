#include <unistd.h>

#include "rdma/bootstrap/member.h"

// The worker ids of a process.

namespace rdmacc {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kClaimNs = 5 * kSecondNs, kNodeClaimNs = 20 * kSecondNs;
constexpr uint64_t kLeaveNs = 3 * kSecondNs;
constexpr uint64_t kClaimRetryNs = 20'000'000;

}  // namespace

Result<Membership::Claim> Member::claim_node(uint16_t thread) {
  CHECK(is_node() && thread < config_.topology.threads_per_node);
  return claim_as(thread);
}

Result<Membership::Claim> Member::claim_as(uint16_t thread) {
  const bool coordinator = thread == kNoThread;
  const uint64_t deadline_ns = monotonic_now_ns() + (coordinator ? kClaimNs : kNodeClaimNs);
  while (true) {
    const Result<Claim> claim = ask_for_claim(thread, deadline_ns);
    if (claim.ok() || (coordinator && interrupted())) return claim;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (memory_lost_) return memory_lost();
    }
    // Its process may just be coming back.
    if (claim.status().code() != Code::kUnavailable || monotonic_now_ns() >= deadline_ns) {
      return claim;
    }
    wait_until_ns(std::min(deadline_ns, monotonic_now_ns() + kClaimRetryNs), [] { return false; });
  }
}

Result<Membership::Claim> Member::ask_for_claim(uint16_t thread, uint64_t deadline_ns) {
  struct Asked {
    bool given_up = false;  // an id that comes later stays unused
    std::optional<Result<Claim>> claim;
  };
  const auto asked = std::make_shared<Asked>();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ask(0, ControlType::kClaim, encode_number(thread), [this, asked](const Result<Bytes>& answer) {
      if (!asked->given_up) asked->claim = take_claim(answer);
    });
    pump_locked({});
  }
  const bool coordinator = thread == kNoThread;
  wait_until_ns(deadline_ns, [&] { return asked->claim || (coordinator && interrupted()); });
  const std::lock_guard<std::mutex> lock(mutex_);
  asked->given_up = true;
  if (asked->claim) return *asked->claim;
  return Status(Code::kUnavailable, "node 0 does not answer");
}

// Before anything else is heard: node 0 may lose the memory that it is of in the next moment.
Result<Membership::Claim> Member::take_claim(const Result<Bytes>& answer) {
  if (!answer.ok()) return answer.status();
  ClaimProof proof;
  if (!decode(answer.value(), proof)) return Status(Code::kCorrupt, "node 0's answer to a claim");
  if (proof.claim.worker >= config_.topology.workers_max) {
    return Status(Code::kCorrupt, "node 0 gave a worker id that is not");
  }
  claims_.push_back(proof);
  has_claimed_ = true;
  for (Outgoing& out : outgoing_) out.presented = false;
  set_incarnation(proof.claim.worker, proof.claim.incarnation, &proof.token);
  return proof.claim;
}

void Member::erase_claim(Claim claim) {
  std::erase_if(claims_, [&](const ClaimProof& own) {
    return own.claim.worker == claim.worker && own.claim.incarnation == claim.incarnation;
  });
}

void Member::leave(Claim claim) {
  CHECK(claim.worker < config_.topology.workers_max);
  if (getpid() != owner_pid_) return;  // it is the parent process's
  ClaimProof proof;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(claims_.begin(), claims_.end(), [&](const ClaimProof& own) {
      return own.claim.worker == claim.worker && own.claim.incarnation == claim.incarnation;
    });
    if (found == claims_.end()) return;
    proof = *found;
  }
  // If node 0 is not there it will find this member gone.
  const Result<Bytes> left = call(0, ControlType::kLeave, encode(proof), kLeaveNs);
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_claim(claim);
  if (left.ok() || incarnation_of(claim.worker) != claim.incarnation) return;
  set_incarnation(claim.worker, 0, nullptr);
}

}  // namespace rdmacc
