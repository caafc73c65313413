#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rdma/shm/shm_fabric.h"

namespace rdmacc {

// The nodes' regions, /rdmacc.<cluster>.node<k>, as this process maps them: whole and once, when
// first needed, without memory behind them. Thread-safe.
class ShmRegions {
 public:
  static constexpr uint64_t kChunkBytes = 64ull << 20;

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
  // Backs whole chunks, so that running out of memory is a Status here and never a SIGBUS.
  Status back(NodeId node, uint64_t offset, uint64_t bytes);
  bool huge_pages_used() const { return huge_pages_used_.load(std::memory_order_relaxed); }

 private:
  std::byte* map(NodeId node);
  Result<std::byte*> map_locked(NodeId node, int fd);

  const std::string cluster_;
  const uint64_t region_bytes_;
  const uint64_t mapped_bytes_;
  const bool huge_pages_;
  std::vector<std::atomic<std::byte*>> bases_;
  std::atomic<bool> huge_pages_used_ = false;

  std::mutex mutex_;  // guards what follows, and the making of mappings
  std::vector<int> fds_;
  std::vector<std::vector<bool>> backed_;  // by node and chunk; what this process has backed
};

}  // namespace rdmacc
