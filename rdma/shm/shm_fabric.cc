#include "rdma/shm/shm_fabric.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "rdma/shm/shm_control.h"
#include "rdma/shm/shm_endpoint.h"
#include "rdma/shm/shm_region.h"

namespace rdmacc {
namespace {

constexpr uint32_t kNodeObjectsMax = 1024;  // as many as a topology can have

class ShmFabricImpl : public ShmFabric {
 public:
  ShmFabricImpl(std::shared_ptr<ShmControl> control, ShmOptions options)
      : cluster_(std::make_shared<ShmCluster>()) {
    cluster_->regions =
        std::make_unique<ShmRegions>(control->cluster(), control->topology(), options.huge_pages);
    cluster_->control = std::move(control);
    cluster_->options = options;
  }

  const Topology& topology() const override { return cluster_->control->topology(); }
  const FabricCapabilities& capabilities() const override { return capabilities_; }

  Result<std::unique_ptr<Endpoint>> join() override {
    for (WorkerId w = topology().node_workers(); w < topology().workers_max; ++w) {
      const uint32_t incarnation = cluster_->control->claim(w);
      if (incarnation != 0) return take(w, incarnation);
    }
    return Status(Code::kNoWorkerSlot, "every worker slot is taken");
  }

  Result<std::unique_ptr<Endpoint>> join_as_node(NodeId node, uint16_t thread) override {
    CHECK(node < topology().nodes && thread < topology().threads_per_node);
    const WorkerId worker = topology().worker_of(node, thread);
    const uint32_t incarnation = cluster_->control->claim(worker);
    if (incarnation == 0) {
      return Status(Code::kUnavailable, "node " + std::to_string(node) + " is running");
    }
    Result<std::byte*> region = cluster_->regions->make(node);
    if (!region.ok()) {
      cluster_->control->leave(worker, incarnation);
      return region.status();
    }
    return take(worker, incarnation);
  }

  std::vector<WorkerId> departed() override { return cluster_->control->departed(); }
  void release(WorkerId worker) override { cluster_->control->release(worker); }
  bool huge_pages_used() const override { return cluster_->regions->huge_pages_used(); }

 private:
  Result<std::unique_ptr<Endpoint>> take(WorkerId worker, uint32_t incarnation) {
    const Status backed = cluster_->control->back_rings(worker);
    if (!backed.ok()) {
      cluster_->control->leave(worker, incarnation);
      return backed;
    }
    return std::unique_ptr<Endpoint>(std::make_unique<ShmEndpoint>(cluster_, worker, incarnation));
  }

  const std::shared_ptr<ShmCluster> cluster_;
  const FabricCapabilities capabilities_{
      .coherent_atomics = true, .max_datagram_bytes = kShmDatagramBytesMax, .inline_bytes = 0};
};

Result<std::unique_ptr<ShmFabric>> wrap(Result<std::shared_ptr<ShmControl>> control,
                                        ShmOptions options) {
  if (!control.ok()) return control.status();
  return std::unique_ptr<ShmFabric>(
      std::make_unique<ShmFabricImpl>(std::move(control.value()), options));
}

}  // namespace

Result<std::unique_ptr<ShmFabric>> ShmFabric::create(const std::string& cluster,
                                                     const Topology& topology, ShmOptions options) {
  return wrap(ShmControl::create(cluster, topology), options);
}

Result<std::unique_ptr<ShmFabric>> ShmFabric::attach(const std::string& cluster,
                                                     ShmOptions options) {
  return wrap(ShmControl::attach(cluster), options);
}

void ShmFabric::destroy(const std::string& cluster) {
  if (!cluster_name_valid(cluster)) return;
  // The control object first: the cluster can no longer be found.
  shm_unlink(shm_control_name(cluster).c_str());
  for (uint32_t node = 0; node < kNodeObjectsMax; ++node) {
    shm_unlink(shm_region_name(cluster, static_cast<NodeId>(node)).c_str());
  }
}

bool ShmFabric::exists(const std::string& cluster) {
  if (!cluster_name_valid(cluster)) return false;
  const int fd = shm_open(shm_control_name(cluster).c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return errno != ENOENT;  // another user's: it exists, attach() says what is wrong
  close(fd);
  return true;
}

}  // namespace rdmacc
