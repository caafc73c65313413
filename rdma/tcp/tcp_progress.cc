#include "rdma/tcp/tcp_progress.h"

#include <sys/mman.h>
#include <unistd.h>

#include "rdma/base/shared_object.h"
#include "rdma/bootstrap/claim_table.h"

namespace rdmacc {
namespace {

std::string object_name(const std::string& cluster, NodeId node) {
  return member_object_name(cluster, "done" + std::to_string(node));
}

}  // namespace

Result<std::unique_ptr<TcpProgress>> TcpProgress::open(const std::string& cluster, NodeId node,
                                                       WorkerId workers_max) {
  Result<int> fd = shm_open_or_make(object_name(cluster, node));
  if (!fd.ok()) return fd.status();
  const size_t bytes = workers_max * sizeof(Mark);
  const Status backed = shm_back(*fd, 0, bytes);  // what is there stays
  void* start = MAP_FAILED;
  if (backed.ok()) start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  close(*fd);
  if (!backed.ok()) return backed;
  if (start == MAP_FAILED) return Status::from_errno("mmap");
  return std::unique_ptr<TcpProgress>(new TcpProgress(static_cast<Mark*>(start), bytes));
}

void TcpProgress::destroy(const std::string& cluster, NodeId node) {
  shm_unlink(object_name(cluster, node).c_str());
}

TcpProgress::~TcpProgress() { munmap(marks_, bytes_); }

void TcpProgress::begin(Membership::Claim claim) {
  CHECK((claim.worker + size_t{1}) * sizeof(Mark) <= bytes_);
  Mark& mark = marks_[claim.worker];
  if (mark.incarnation == claim.incarnation) return;
  mark.done.store(0, std::memory_order_release);
  mark.incarnation = claim.incarnation;
}

uint32_t TcpProgress::done(WorkerId worker, uint64_t sequence) const {
  CHECK((worker + size_t{1}) * sizeof(Mark) <= bytes_);
  const uint64_t word = marks_[worker].done.load(std::memory_order_relaxed);
  const uint64_t last = word >> kVerbBits;
  if (sequence < last) return kWhole;
  return sequence == last ? static_cast<uint32_t>(word & kWhole) : 0;
}

}  // namespace rdmacc
