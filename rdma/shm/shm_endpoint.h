#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "rdma/base/host_clock.h"
#include "rdma/fabric/mapped_memory.h"
#include "rdma/fabric/verb_delays.h"
#include "rdma/shm/shm_control.h"
#include "rdma/shm/shm_region.h"

namespace rdmacc {

// What a ShmFabric and its endpoints share within one process; whichever goes last unmaps it.
struct ShmCluster {
  std::shared_ptr<ShmControl> control;
  std::unique_ptr<ShmRegions> regions;
  ShmOptions options;
};

// One worker's end of the shm fabric. After fork() it belongs to the parent: the child must not
// use it, and its destructor there leaves the parent's slot alone. (A child attaches anew.)
class ShmEndpoint final : public Endpoint {
 public:
  // Takes over the claimed slot: it is published here, and freed by the destructor.
  ShmEndpoint(std::shared_ptr<ShmCluster> cluster, WorkerId worker, uint32_t incarnation);
  ~ShmEndpoint() override;
  ShmEndpoint(const ShmEndpoint&) = delete;
  ShmEndpoint& operator=(const ShmEndpoint&) = delete;

  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override;
  Port port() const override { return mapped_ != nullptr ? Port::kMapped : Port::kPosted; }
  MappedMemory* mapped() override { return mapped_.get(); }
  bool send(WorkerId to, std::span<const std::byte> datagram) override;
  bool send_quietly(WorkerId to, std::span<const std::byte> datagram) override;
  void set_datagram_handler(DatagramHandler handler) override;
  bool poll() override;
  bool all_carried_out() const override {
    return posted_.chains.empty() && executing_.chains.empty();
  }
  void spin(uint64_t deadline_us) override;
  void wait(uint64_t deadline_us) override;
  void wake() override;
  uint64_t now_us() override { return now_ns() / 1000; }
  uint64_t now_ns() override {
    const uint64_t now = clock_.now_ns();
    return now > epoch_ns_ ? now - epoch_ns_ : 0;
  }
  Random& random() override { return random_; }
  Result<std::byte*> allocate_registered(size_t bytes) override;
  std::byte* local_region() override;
  Status back_region(uint64_t offset, uint64_t bytes) override;
  void expect_backing(uint64_t offset, uint64_t bytes) override;
  uint32_t incarnation_of(WorkerId worker) override;

 private:
  struct Chain {
    std::byte* region;  // nullptr: the node has none
    size_t first_verb;
    size_t verb_count;
    Completion* completion;
  };
  // The verbs that were posted, in order. Two of them, so that a poll works on one while new
  // chains go to the other.
  struct Posted {
    std::vector<Verb> verbs;
    std::vector<Chain> chains;
    void clear() {
      verbs.clear();
      chains.clear();
    }
  };
  class Mapped : public MappedMemory {
   public:
    Mapped(ShmRegions& regions, const Topology& topology)
        : MappedMemory(topology.nodes, topology.region_bytes), regions_(regions) {}

   private:
    std::byte* map(NodeId node) override { return regions_.at(node); }
    ShmRegions& regions_;
  };
  struct Liveness {
    uint64_t owner_word = 0;
    uint64_t checked_ns = 0;
    uint32_t incarnation = 0;  // 0: it is dead
  };
  struct Block {
    void* start;
    size_t bytes;
  };

  bool carry_out_posted();
  bool carry_out_delayed();
  bool carry_out_rest(const Chain& chain);
  void carry_out_passive();
  size_t prefetch_from(size_t first) const;
  void carry_out_chain(std::span<const Verb> verbs, std::byte* region);
  bool receive();
  void receive_from(WorkerId from);
  bool anything_there() const;
  bool forget_senders();
  NodeId own_node() const;

  const std::shared_ptr<ShmCluster> cluster_;
  ShmControl& control_;
  ShmRegions& regions_;
  ShmSlot& slot_;
  std::atomic<uint64_t>* const dirty_;  // this worker's
  const HostProcess process_;           // that joined
  const uint64_t epoch_ns_;
  HostClock clock_;
  Random random_;
  DatagramHandler handler_;
  std::vector<ShmRing> in_, out_;  // by the worker at the other end
  std::vector<uint64_t> heard_;    // senders since receive() has cleared bits last, as dirty words
  uint32_t receives_ = 0;
  Posted posted_, executing_;
  size_t next_chain_ = 0, next_verb_ = 0;  // of executing_, where a pause holds it up
  CpuVerbs cpu_;
  std::unique_ptr<VerbDelays> delays_;  // nullptr: no such fault
  std::unique_ptr<Mapped> mapped_;      // nullptr: verbs are posted, as with delays between them
  std::vector<Liveness> liveness_;      // by worker
  uint32_t liveness_asked_ = 0;
  std::vector<Block> blocks_;
  std::atomic<bool> wake_requested_ = false;  // by any thread
};

}  // namespace rdmacc
