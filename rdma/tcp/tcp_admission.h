#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "rdma/bootstrap/membership.h"
#include "rdma/tcp/tcp_wire.h"

namespace rdmacc {

// Whether a worker's connection may still have verbs carried out. The thread that serves it is
// `busy` while it does so; a fence waits for that, and after it nothing is.
class TcpGuard {
 public:
  // Between them one chain is carried out; false: the worker has been fenced.
  bool enter() {
    busy_.store(true, std::memory_order_seq_cst);
    if (!fenced_.load(std::memory_order_seq_cst)) return true;
    busy_.store(false, std::memory_order_release);
    return false;
  }
  void exit() { busy_.store(false, std::memory_order_release); }

  bool fenced() const { return fenced_.load(std::memory_order_acquire); }
  void fence();

 private:
  std::atomic<bool> busy_ = false;
  std::atomic<bool> fenced_ = false;
};

// Admission to a node's thread: the node's control thread gives out tickets for it and shuts it to
// the dead, the thread itself lets in a worker that shows one. Thread-safe.
class TcpAdmission {
 public:
  struct Admitted {
    Membership::Claim claim;
    SecretKey key;
    std::shared_ptr<TcpGuard> guard;
  };

  TcpAdmission(uint16_t port, uint32_t incarnation) : port_(port), incarnation_(incarnation) {}

  // Replaces the ticket that the worker had; its connections are fenced first, so that nothing of
  // an old one is carried out after something of the new one.
  TcpTicket issue(Membership::Claim claim);
  // Takes the ticket; its worker is known to fence() from here on.
  std::optional<Admitted> admit(const TicketId& id);
  // Ends the access of the worker, whichever incarnation of it.
  void fence(WorkerId worker);

 private:
  static constexpr uint64_t kTicketNs = 10'000'000'000;
  struct Ticket {
    TicketId id;
    SecretKey key;
    Membership::Claim claim;
    uint64_t expires_ns;
  };

  void fence_locked(WorkerId worker);

  const uint16_t port_;
  const uint32_t incarnation_;
  std::mutex mutex_;
  std::map<WorkerId, Ticket> tickets_;
  std::map<WorkerId, std::vector<std::weak_ptr<TcpGuard>>> guards_;
};

}  // namespace rdmacc
