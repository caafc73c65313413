#pragma once
#include <memory>
#include <optional>
#include <string>

#include "rdma/bootstrap/membership.h"
#include "rdma/open/fabric_kind.h"
#include "rdma/verbs/verbs_fabric.h"

// The one place where a fabric is chosen: no code above this folder knows which one it runs on. A
// further kind is a case in open_fabric.cc.

namespace rdmacc {

struct FabricChoice {
  FabricKind kind = FabricKind::kShm;
  std::string cluster;   // shm: its name
  ClusterConfig config;  // every other kind
  bool huge_pages = true;
  // verbs. `device` may be several names, by commas: node k has the k-th, and from the first again
  // when there are fewer; coordinators have the last.
  VerbsOptions verbs;
  // shm, tcp: pauses between verbs, as a fault (verb_delays.h). All processes of a cluster have the
  // same seed. Without one, what kVerbDelaysVariable says.
  std::optional<uint64_t> verb_delays;

  static FabricChoice shm(std::string name) {
    FabricChoice choice;
    choice.cluster = std::move(name);
    return choice;
  }
  static FabricChoice remote(FabricKind kind, ClusterConfig config) {
    FabricChoice choice;
    choice.kind = kind;
    choice.config = std::move(config);
    return choice;
  }
};

// In the environment of a node, a server or a benchmark: the seed of verb delays.
inline constexpr const char* kVerbDelaysVariable = "RDMACC_VERB_DELAYS";

// Makes what the members of a new cluster on this host have in common, before its nodes start.
// Only shm has such a thing; elsewhere nothing is done, and node 0 keeps what there is.
// kInvalidArgument if it exists.
Status create_cluster(const FabricChoice& choice, const Topology& topology);
// Removes what the cluster has left on this host, the rows of its nodes included. No node runs.
void destroy_cluster(const FabricChoice& choice);

// Forgets the rows that a node, which does not run, has in memory on this host: for one that has
// them on disk. kInvalidArgument: on shm all nodes go together.
Status discard_node_memory(const FabricChoice& choice, NodeId node);

// True from create_cluster(), or the start of node 0 on this host, until destroy_cluster().
bool cluster_exists(const FabricChoice& choice);
// What a choice must be like before any other process is asked: its config, and its secret file's
// owner, mode and length. kInvalidArgument says what is not so.
Status check_choice(const FabricChoice& choice);

// A coordinator's process: owns no thread, and is to be opened after fork(). kNotFound: there is
// no such cluster (yet); kInvalidArgument: the config or the secret is not as it must be.
Result<std::unique_ptr<Fabric>> open_fabric(const FabricChoice& choice);
// The process of a node.
Result<std::unique_ptr<Fabric>> open_fabric_as_node(const FabricChoice& choice, NodeId node);

}  // namespace rdmacc
