#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "rdma/base/host_process.h"
#include "rdma/base/shared_object.h"
#include "rdma/fabric/fabric.h"
#include "rdma/shm/shm_ring.h"

// The control object of a cluster on one host, /rdmacc.<cluster>.ctl. It is sparse: what a worker
// uses of it is backed with memory when the worker joins.
//
//   | ShmHeader, one page | ShmSlot[workers_max] | dirty words | rings |
//
// Any process may die between two stores, so nothing here is a lock. A slot changes hands by one
// compare-and-swap of its owner word; everything else in it belongs to the owner, or is an atomic
// that the next owner can take over in any state.

namespace rdmacc {

constexpr uint64_t kShmReady = 0x72646D6163632031;  // published last by the creator
constexpr uint32_t kShmLayoutVersion = 2;  // of messages and records, too
constexpr size_t kShmPageBytes = 4096;

struct ShmHeader {
  std::atomic<uint64_t> ready;
  uint32_t layout_version;
  uint16_t nodes;
  uint16_t threads_per_node;
  uint16_t workers_max;
  uint16_t reserved[3];
  uint64_t region_bytes;
  uint64_t epoch_ns;  // CLOCK_MONOTONIC when the cluster was created
  uint64_t total_bytes;
};
static_assert(sizeof(ShmHeader) <= kShmPageBytes && std::atomic<uint64_t>::is_always_lock_free);

// The holder of a worker id: one word, so that it is never half known.
//   | incarnation 24 | pid 22 | low bits of the process's start time 16 | state 2 |
struct ShmOwner {
  enum class State : uint8_t { kFree = 0, kClaimed = 1, kLive = 2 };
  static constexpr uint32_t kIncarnationMax = (1u << 24) - 1;

  State state = State::kFree;
  uint16_t start_time = 0;
  uint32_t pid = 0;
  uint32_t incarnation = 0;  // kept while free

  HostProcess process() const { return HostProcess{pid, start_time}; }
  uint64_t pack() const {
    return static_cast<uint64_t>(incarnation) << 40 | static_cast<uint64_t>(pid) << 18 |
           static_cast<uint64_t>(start_time) << 2 | static_cast<uint64_t>(state);
  }
  static ShmOwner unpack(uint64_t word) {
    return ShmOwner{static_cast<State>(word & 3), static_cast<uint16_t>(word >> 2),
                    static_cast<uint32_t>(word >> 18 & ((1u << 22) - 1)),
                    static_cast<uint32_t>(word >> 40)};
  }
};

struct alignas(kCacheLineBytes) ShmSlot {
  std::atomic<uint64_t> owner;
  std::atomic<uint32_t> sleeping;  // futex word: 1 while the owner is in, or about to, FUTEX_WAIT
  uint32_t reserved;
};
static_assert(sizeof(ShmSlot) == kCacheLineBytes);

class ShmControl {
 public:
  static Result<std::shared_ptr<ShmControl>> create(const std::string& cluster,
                                                    const Topology& topology);
  static Result<std::shared_ptr<ShmControl>> attach(const std::string& cluster);
  ~ShmControl();
  ShmControl(const ShmControl&) = delete;
  ShmControl& operator=(const ShmControl&) = delete;

  const std::string& cluster() const { return cluster_; }
  const Topology& topology() const { return topology_; }
  uint64_t epoch_ns() const { return header().epoch_ns; }

  ShmSlot& slot(WorkerId worker) const;
  // The senders whose rings `worker` looks at, one bit each. One that has sent something sets its
  // bit if it is not set; the worker clears those of senders that have been silent for a while, and
  // all before it sleeps, and then looks at their rings once more.
  std::atomic<uint64_t>* dirty_words(WorkerId worker) const;
  size_t dirty_word_count() const { return dirty_word_count_; }
  // False for two coordinators: they have no rings.
  bool has_ring(WorkerId from, WorkerId to) const;
  ShmRing ring(WorkerId from, WorkerId to) const;

  // Takes the slot if it is free (or, for node threads, if its owner is dead), in state
  // kClaimed: senders leave it alone until publish(). Returns the incarnation, 0 if taken.
  uint32_t claim(WorkerId worker);
  // Backs the rings of `worker` with memory.
  Status back_rings(WorkerId worker);
  void publish(WorkerId worker, uint32_t incarnation);
  // Frees the slot if `incarnation` (of this process) still owns it.
  void leave(WorkerId worker, uint32_t incarnation);
  // Frees the slot of a dead owner.
  void release(WorkerId worker);
  std::vector<WorkerId> departed() const;

 private:
  ShmControl(std::string cluster, const Topology& topology, std::byte* base, int fd);
  static Result<std::shared_ptr<ShmControl>> map(const std::string& cluster,
                                                 const Topology& topology, int fd);
  static size_t rings_offset(const Topology& topology);
  static size_t total_bytes(const Topology& topology);

  ShmHeader& header() const { return *reinterpret_cast<ShmHeader*>(base_); }
  size_t ring_offset(WorkerId from, WorkerId to) const;
  Status back(size_t offset, size_t bytes) const;

  const std::string cluster_;
  const Topology topology_;
  std::byte* const base_;
  const int fd_;
  const size_t dirty_word_count_;
};

// Names of a cluster's objects.
std::string shm_control_name(const std::string& cluster);
std::string shm_region_name(const std::string& cluster, NodeId node);

}  // namespace rdmacc
