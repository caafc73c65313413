#pragma once
#include <memory>
#include <vector>

#include "rdma/sim/sim_cluster.h"

namespace rdmacc {

// What one simulated worker holds of the fabric. What has reached it waits in done_ and inbox_
// for the poll() of its next step.
class SimEndpoint : public Endpoint {
 public:
  SimEndpoint(std::shared_ptr<SimCluster> cluster, WorkerId worker);
  ~SimEndpoint() override;
  SimEndpoint(const SimEndpoint&) = delete;
  SimEndpoint& operator=(const SimEndpoint&) = delete;

  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override;
  Port port() const override {
    return cluster_->options.one_by_one ? Port::kOneByOne : Port::kPosted;
  }
  bool send(WorkerId to, std::span<const std::byte> datagram) override;
  void set_datagram_handler(DatagramHandler handler) override;
  bool poll() override;
  void wait(uint64_t deadline_us) override;
  void wake() override;
  uint64_t now_us() override { return now_ns() / 1000; }
  uint64_t now_ns() override { return cluster_->now_ns_of(worker_); }
  ClockBounds clock_bounds() override { return cluster_->clock_bounds_of(worker_); }
  Random& random() override { return random_; }
  Result<std::byte*> allocate_registered(size_t bytes) override;
  std::byte* local_region() override;
  Status back_region(uint64_t offset, uint64_t bytes) override;
  uint32_t incarnation_of(WorkerId worker) override;

  // ---- For SimCluster.
  bool registered(const void* local, size_t bytes) const;
  void push_done(Completion* completion, bool failed);
  void push_datagram(uint32_t index) { inbox_.push_back(index); }
  bool has_arrivals() const { return !done_.empty() || !inbox_.empty(); }
  void forget_arrivals();

 private:
  struct Done {
    Completion* completion;
    bool failed;
  };
  struct Block {
    std::byte* start;
    size_t bytes;
  };

  const std::shared_ptr<SimCluster> cluster_;
  SimInitiator* const initiator_;
  Random random_;
  DatagramHandler handler_;
  std::vector<Done> done_, done_now_;
  std::vector<uint32_t> inbox_, inbox_now_;
  std::vector<Block> blocks_;
};

}  // namespace rdmacc
