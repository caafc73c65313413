#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "rdma/bootstrap/membership.h"

namespace rdmacc {

// How far a node has carried out what each worker's chains of unacknowledged WRITEs ask for. Their
// worker posts them again on its next connection, and must not have a WRITE happen twice: what it
// has unlocked may be another's by then. In shared memory, so that a node that died knows it, too
// (but for one verb: a process can die between that and the note of it).
//
// A worker's mark is changed by the thread that serves its verbs, and by one connection at a time.
class TcpProgress {
 public:
  static constexpr uint32_t kWhole = 0xFFFF;  // more than a chain has verbs

  // Made if it is not there. kNoSpace: no shared memory.
  static Result<std::unique_ptr<TcpProgress>> open(const std::string& cluster, NodeId node,
                                                   WorkerId workers_max);
  static void destroy(const std::string& cluster, NodeId node);
  ~TcpProgress();
  TcpProgress(const TcpProgress&) = delete;
  TcpProgress& operator=(const TcpProgress&) = delete;

  // Before the first chain of a connection: an earlier owner of the worker id is forgotten.
  void begin(Membership::Claim claim);
  // How many verbs of the chain have been carried out; kWhole: all of them.
  uint32_t done(WorkerId worker, uint64_t sequence) const;
  void note(WorkerId worker, uint64_t sequence, uint32_t verbs) {
    marks_[worker].done.store(sequence << kVerbBits | verbs, std::memory_order_release);
  }

 private:
  static constexpr int kVerbBits = 16;
  struct alignas(64) Mark {
    uint64_t incarnation;
    std::atomic<uint64_t> done;  // sequence of the last chain, and how many of its verbs
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  TcpProgress(Mark* marks, size_t bytes) : marks_(marks), bytes_(bytes) {}

  Mark* const marks_;  // by worker
  const size_t bytes_;
};

}  // namespace rdmacc
