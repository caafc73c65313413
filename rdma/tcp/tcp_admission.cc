#include "rdma/tcp/tcp_admission.h"

#include <sched.h>

#include "rdma/bootstrap/claim_table.h"

namespace rdmacc {

// A chain is short, and the thread that carries it out never waits in it: so this ends, however
// long that thread is not run.
void TcpGuard::fence() {
  fenced_.store(true, std::memory_order_seq_cst);
  while (busy_.load(std::memory_order_seq_cst)) sched_yield();
}

TcpTicket TcpAdmission::issue(Membership::Claim claim) {
  CHECK(claim.worker != kNoWorker && claim.incarnation != 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  fence_locked(claim.worker);
  const Ticket ticket{random_secret<TicketId>(), random_secret<SecretKey>(), claim,
                      monotonic_now_ns() + kTicketNs};
  tickets_[claim.worker] = ticket;
  return TcpTicket{ticket.id, ticket.key, incarnation_, port_, 0};
}

std::optional<TcpAdmission::Admitted> TcpAdmission::admit(const TicketId& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = tickets_.begin(); it != tickets_.end(); ++it) {
    if (!same_secret(it->second.id, id)) continue;
    const Ticket ticket = it->second;
    tickets_.erase(it);
    if (monotonic_now_ns() > ticket.expires_ns) return std::nullopt;
    Admitted admitted{ticket.claim, ticket.key, std::make_shared<TcpGuard>()};
    guards_[ticket.claim.worker].push_back(admitted.guard);
    return admitted;
  }
  return std::nullopt;
}

void TcpAdmission::fence(WorkerId worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fence_locked(worker);
}

void TcpAdmission::fence_locked(WorkerId worker) {
  tickets_.erase(worker);
  const auto found = guards_.find(worker);
  if (found == guards_.end()) return;
  for (const std::weak_ptr<TcpGuard>& each : found->second) {
    if (const std::shared_ptr<TcpGuard> guard = each.lock()) guard->fence();
  }
  guards_.erase(found);
}

}  // namespace rdmacc
