#pragma once
#include <memory>
#include <utility>

#include "rdma/fabric/fabric.h"

namespace rdmacc {

// Hands everything on to another endpoint: for tests that look at what passes, or change it.
class ForwardingEndpoint : public Endpoint {
 public:
  explicit ForwardingEndpoint(std::unique_ptr<Endpoint> inner) : inner_(std::move(inner)) {
    worker_ = inner_->worker();
    incarnation_ = inner_->incarnation();
  }
  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override {
    inner_->ring(node, chain, completion);
  }
  Port port() const override { return inner_->port(); }
  MappedMemory* mapped() override { return inner_->mapped(); }
  bool send(WorkerId to, std::span<const std::byte> datagram) override {
    return inner_->send(to, datagram);
  }
  void set_datagram_handler(DatagramHandler handler) override {
    inner_->set_datagram_handler(std::move(handler));
  }
  bool poll() override { return inner_->poll(); }
  void wait(uint64_t deadline_us) override { inner_->wait(deadline_us); }
  uint64_t now_us() override { return inner_->now_us(); }
  uint64_t now_ns() override { return inner_->now_ns(); }
  Random& random() override { return inner_->random(); }
  Result<std::byte*> allocate_registered(size_t bytes) override {
    return inner_->allocate_registered(bytes);
  }
  std::byte* local_region() override { return inner_->local_region(); }
  Status back_region(uint64_t offset, uint64_t bytes) override {
    return inner_->back_region(offset, bytes);
  }
  uint32_t incarnation_of(WorkerId worker) override { return inner_->incarnation_of(worker); }

 private:
  const std::unique_ptr<Endpoint> inner_;
};

}  // namespace rdmacc
