#include "rdma/open/open_fabric.h"

#include <cstdlib>
#include <sstream>

#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/fabric/verb_delays.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/tcp/tcp_fabric.h"
#include "rdma/verbs/verbs_fabric.h"

namespace rdmacc {
namespace {

// The simulator's cluster is one object in one thread: the simulation that drives it makes it.
Status not_by_processes(FabricKind kind) {
  return Status(Code::kInvalidArgument,
                std::string("the fabric ") + fabric_name(kind) + " is not opened by processes");
}

template <typename AFabric>
Result<std::unique_ptr<Fabric>> as_fabric(Result<std::unique_ptr<AFabric>> opened) {
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Fabric>(std::move(*opened));
}

// node == nodes: a coordinator.
VerbsOptions verbs_options(const FabricChoice& choice, size_t node, size_t nodes) {
  VerbsOptions options = choice.verbs;
  options.huge_pages = choice.huge_pages;
  std::vector<std::string> devices;
  std::istringstream list(choice.verbs.device);
  for (std::string device; std::getline(list, device, ',');) devices.push_back(device);
  if (devices.empty()) return options;
  options.device = node == nodes ? devices.back() : devices[node % devices.size()];
  return options;
}

// Of the choice, or of the environment; none there: no delays.
Result<std::optional<uint64_t>> verb_delays_of(const FabricChoice& choice) {
  std::optional<uint64_t> seed = choice.verb_delays;
  const char* const asked = std::getenv(kVerbDelaysVariable);
  if (!seed && asked != nullptr && *asked != '\0') {
    Result<uint64_t> parsed = parse_delay_seed(asked);
    if (!parsed.ok()) return parsed.status();
    seed = *parsed;
  }
  if (seed && choice.kind != FabricKind::kShm && choice.kind != FabricKind::kTcp) {
    return Status(Code::kInvalidArgument,
                  std::string("verb delays: not on the fabric ") + fabric_name(choice.kind));
  }
  return seed;
}

ShmOptions shm_options(const FabricChoice& choice, std::optional<uint64_t> verb_delays) {
  return {.huge_pages = choice.huge_pages, .verb_delays = verb_delays};
}

TcpOptions tcp_options(const FabricChoice& choice, std::optional<uint64_t> verb_delays) {
  return {.huge_pages = choice.huge_pages, .verb_delays = verb_delays};
}

}  // namespace

Status create_cluster(const FabricChoice& choice, const Topology& topology) {
  if (choice.kind != FabricKind::kShm) return Status();
  return ShmFabric::create(choice.cluster, topology).status();
}

void destroy_cluster(const FabricChoice& choice) {
  if (choice.kind == FabricKind::kShm) ShmFabric::destroy(choice.cluster);
  if (choice.kind == FabricKind::kTcp) TcpFabric::destroy(choice.config);
  if (choice.kind == FabricKind::kVerbs) VerbsFabric::destroy(choice.config);
}

Status discard_node_memory(const FabricChoice& choice, NodeId node) {
  if (choice.kind == FabricKind::kShm) {
    return Status(Code::kInvalidArgument, "on shared memory all nodes' rows go together");
  }
  if (choice.kind == FabricKind::kTcp) TcpFabric::destroy_node(choice.config, node);
  if (choice.kind == FabricKind::kVerbs) VerbsFabric::destroy_node(choice.config, node);
  return Status();
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
  Result<std::optional<uint64_t>> delays = verb_delays_of(choice);
  if (!delays.ok()) return delays.status();
  switch (choice.kind) {
    case FabricKind::kShm:
      return as_fabric(ShmFabric::attach(choice.cluster, shm_options(choice, *delays)));
    case FabricKind::kTcp:
      return as_fabric(TcpFabric::open(choice.config, tcp_options(choice, *delays)));
    case FabricKind::kVerbs: {
      Result<std::unique_ptr<Membership>> membership = Membership::open(choice.config);
      if (!membership.ok()) return membership.status();
      const size_t nodes = choice.config.nodes.size();
      return as_fabric(
          VerbsFabric::open(std::move(*membership), verbs_options(choice, nodes, nodes)));
    }
    case FabricKind::kSim:
      break;
  }
  return not_by_processes(choice.kind);
}

Result<std::unique_ptr<Fabric>> open_fabric_as_node(const FabricChoice& choice, NodeId node) {
  Result<std::optional<uint64_t>> delays = verb_delays_of(choice);
  if (!delays.ok()) return delays.status();
  if (choice.kind == FabricKind::kVerbs) {
    Result<std::unique_ptr<Membership>> membership = Membership::open_as_node(choice.config, node);
    if (!membership.ok()) return membership.status();
    return as_fabric(VerbsFabric::open_as_node(
        std::move(*membership), node, verbs_options(choice, node, choice.config.nodes.size())));
  }
  if (choice.kind != FabricKind::kTcp) return open_fabric(choice);
  return as_fabric(TcpFabric::open_as_node(choice.config, node, tcp_options(choice, *delays)));
}

}  // namespace rdmacc
