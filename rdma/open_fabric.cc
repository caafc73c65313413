#include "rdma/open_fabric.h"

#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/shm_fabric.h"
#include "rdma/tcp_fabric.h"

namespace rdmacc {
namespace {

// The simulator's cluster is one object in one thread: whoever drives it makes it.
Status not_by_processes(FabricKind kind) {
  return Status(Code::kInvalidArgument,
                std::string("the fabric ") + fabric_name(kind) + " is not opened by processes");
}

template <typename AFabric>
Result<std::unique_ptr<Fabric>> as_fabric(Result<std::unique_ptr<AFabric>> opened) {
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Fabric>(std::move(*opened));
}

}  // namespace

Status create_cluster(const FabricChoice& choice, const Topology& topology) {
  if (choice.kind != FabricKind::kShm) return Status();
  return ShmFabric::create(choice.cluster, topology).status();
}

void destroy_cluster(const FabricChoice& choice) {
  if (choice.kind == FabricKind::kShm) ShmFabric::destroy(choice.cluster);
  if (choice.kind == FabricKind::kTcp) TcpFabric::destroy(choice.config);
}

bool cluster_exists(const FabricChoice& choice) {
  if (choice.kind == FabricKind::kShm) return ShmFabric::exists(choice.cluster);
  return Membership::exists(choice.config);
}

Status check_choice(const FabricChoice& choice) {
  if (choice.kind == FabricKind::kShm) return Status();
  RDMACC_RETURN_IF_ERROR(check_cluster_config(choice.config));
  Result<SecretKey> key = load_cluster_key(choice.config.secret_file, choice.config.name);
  if (key.ok()) key->fill(0);
  return key.status();
}

Result<std::unique_ptr<Fabric>> open_fabric(const FabricChoice& choice) {
  switch (choice.kind) {
    case FabricKind::kShm:
      return as_fabric(ShmFabric::attach(choice.cluster, {.huge_pages = choice.huge_pages}));
    case FabricKind::kTcp:
      return as_fabric(TcpFabric::open(choice.config, {.huge_pages = choice.huge_pages}));
    case FabricKind::kSim:
      break;
  }
  return not_by_processes(choice.kind);
}

Result<std::unique_ptr<Fabric>> open_fabric_as_node(const FabricChoice& choice, NodeId node) {
  if (choice.kind != FabricKind::kTcp) return open_fabric(choice);
  return as_fabric(TcpFabric::open_as_node(choice.config, node, {.huge_pages = choice.huge_pages}));
}

}  // namespace rdmacc
