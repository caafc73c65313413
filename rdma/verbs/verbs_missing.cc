// Built where there is no libibverbs: the verbs fabric says that it cannot be had.
#include "rdma/verbs/verbs_fabric.h"

namespace rdmacc {
namespace {

Status missing() {
  return Status(Code::kUnavailable, "this build has no verbs fabric: libibverbs was not there");
}

}  // namespace

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::open(std::unique_ptr<Membership>,
                                                       const VerbsOptions&) {
  return missing();
}

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::open_as_node(std::unique_ptr<Membership>, NodeId,
                                                               const VerbsOptions&) {
  return missing();
}

void VerbsFabric::destroy(const ClusterConfig&) {}

bool verbs_device_present() { return false; }

}  // namespace rdmacc
