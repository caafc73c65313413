#pragma once
#include "rdma/verbs/verbs_fabric.h"
#include "rdma/verbs/verbs_handles.h"
#include "rdma/verbs/verbs_wire.h"

namespace rdmacc {

// An opened device: context, protection domain and the port that is used. Every endpoint has one of
// its own, since queue pairs of one context share the pages through which doorbells ring (DrTM+H
// 3.1); a node has one more for what peers reach, so that no peer's key opens a worker's buffers.
// Immutable after open().
class VerbsDevice {
 public:
  static Result<std::unique_ptr<VerbsDevice>> open(const VerbsOptions& options);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  uint8_t port() const { return port_; }
  const VerbsPortAddress& address() const { return address_; }
  const ibv_device_attr& limits() const { return limits_; }
  std::string name() const { return ibv_get_device_name(context_->device); }

  bool coherent_atomics() const { return limits_.atomic_cap == IBV_ATOMIC_GLOB; }
  uint32_t datagram_bytes() const { return 128u << address_.mtu; }
  // READs and atomics in flight on one queue pair, as initiator and as target.
  uint8_t reads_out_max() const;
  uint8_t reads_in_max() const;

  // How packets get to `peer`.
  ibv_ah_attr route_to(const VerbsPortAddress& peer) const;

 private:
  VerbsDevice() = default;
  Status choose_port(const VerbsOptions& options);
  Status choose_gid(const VerbsOptions& options);

  VerbsHandle<ibv_context> context_;
  VerbsHandle<ibv_pd> domain_;
  ibv_device_attr limits_{};
  uint8_t port_ = 0;
  uint8_t gid_index_ = 0;
  VerbsPortAddress address_;
};

// What the failed call `what` left in errno, as a Status that names it; memory that may not be
// pinned is kNoSpace with the hint where to raise the limit.
Status verbs_failure(const char* what);
// From the kernel: packet numbers and keys must not be guessable from others.
uint32_t verbs_random();

}  // namespace rdmacc
