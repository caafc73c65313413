#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rdma/shm/backing_thread.h"
#include "rdma/shm/shm_fabric.h"

namespace rdmacc {

// The nodes' regions, /rdmacc.<cluster>.node<k>, as this process maps them: whole and once, when
// first needed, without memory behind them. Thread-safe.
class ShmRegions {
 public:
  static constexpr uint64_t kChunkBytes = 2ull << 20;  // what may become a huge page

  ShmRegions(std::string cluster, const Topology& topology, bool huge_pages);
  ~ShmRegions();
  ShmRegions(const ShmRegions&) = delete;
  ShmRegions& operator=(const ShmRegions&) = delete;

  // nullptr as long as the node has not made its region.
  std::byte* at(NodeId node) {
    std::byte* base = bases_[node].load(std::memory_order_acquire);
    return base != nullptr ? base : map(node);
  }
  // Makes the region if it does not exist, keeps its content if it does.
  Result<std::byte*> make(NodeId node);
  // Backs the range, so that running out of memory is a Status here and never a SIGBUS. Whole
  // chunks in it get huge pages where that is possible.
  Status back(NodeId node, uint64_t offset, uint64_t bytes);
  // The same by a thread of its own, before it is asked for; if that fails, back() says so.
  void back_ahead(NodeId node, uint64_t offset, uint64_t bytes);
  bool huge_pages_used() const { return huge_pages_used_.load(std::memory_order_relaxed); }

 private:
  std::byte* map(NodeId node);
  Result<std::byte*> map_locked(NodeId node, int fd);
  uint64_t ready_ahead(NodeId node, uint64_t offset) const;
  bool back_next(NodeId node, uint64_t offset, uint64_t bytes);
  Status back_locked(NodeId node, uint64_t offset, uint64_t bytes);

  const std::string cluster_;
  const uint64_t region_bytes_;
  const uint64_t mapped_bytes_;
  const bool huge_pages_;
  std::vector<std::atomic<std::byte*>> bases_;
  std::atomic<bool> huge_pages_used_ = false;

  std::mutex mutex_;  // guards what follows, and the making of mappings and of memory: milliseconds
  std::vector<int> fds_;

  struct Range {
    uint64_t begin = 0, end = 0;
  };
  mutable std::mutex ahead_mutex_;  // guards what follows; held for a moment, inside of the other
  std::vector<Range> ahead_;        // by node: what back_ahead() has backed last

  BackingThread backing_;  // the first to end
};

}  // namespace rdmacc
