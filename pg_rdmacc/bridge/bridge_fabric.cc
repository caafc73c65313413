// The fabrics of engine_bridge.h: what a description stands for, clusters of this host, and the
// watch over nodes that others run.
#include <cstdio>
#include <optional>
#include <string>

#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/cluster_watch.h"
#include "rdma/bootstrap/loopback_files.h"

namespace rdmacc::bridge {
namespace {

constexpr const char* kFabrics[] = {"shm", "tcp", "verbs"};  // those that processes can open

ClusterWatch* cluster_watch = nullptr;

std::string text_of(const char* text) { return text != nullptr ? text : ""; }

Topology topology_of(const BridgeFabric& fabric, size_t nodes) {
  CHECK(nodes < kNoWorker && fabric.threads_per_node > 0);
  CHECK(fabric.workers_max > 0 && fabric.workers_max < kNoWorker);  // ids have 16 bits
  Topology topology;
  topology.nodes = static_cast<NodeId>(nodes);
  topology.threads_per_node = static_cast<uint16_t>(fabric.threads_per_node);
  topology.workers_max = static_cast<WorkerId>(fabric.workers_max);
  topology.region_bytes = fabric.region_bytes;
  return topology;
}

Result<ClusterConfig> config_of(const BridgeFabric& fabric) {
  if (fabric.config != nullptr) return read_cluster_config(fabric.config);
  ClusterConfig config;
  Result<std::vector<HostPort>> nodes = parse_node_list(text_of(fabric.node_list));
  if (!nodes.ok()) return nodes.status();
  config.name = text_of(fabric.cluster);
  config.topology = topology_of(fabric, nodes->size());
  config.nodes = std::move(*nodes);
  config.secret_file = text_of(fabric.secret_file);
  return config;
}

// Runs `call`; its status becomes the last error.
template <typename Call>
bool succeeds(Call&& call) noexcept {
  bool done = false;
  no_throw([&] {
    const Status status = call();
    set_error(status);
    done = status.ok();
  });
  return done;
}

}  // namespace

Result<FabricChoice> choice_of(const BridgeFabric& fabric) {
  CHECK(fabric.kind != nullptr);
  const std::string kind = text_of(fabric.kind);
  if (kind == fabric_name(FabricKind::kShm)) return FabricChoice::shm(text_of(fabric.cluster));
  const std::optional<FabricKind> remote = remote_fabric_kind(kind);
  if (!remote) return Status(Code::kInvalidArgument, "there is no fabric " + kind);
  Result<ClusterConfig> config = config_of(fabric);
  if (!config.ok()) return config.status();
  FabricChoice choice = FabricChoice::remote(*remote, std::move(*config));
  choice.verbs.device = text_of(fabric.verbs_device);
  choice.verbs.port = static_cast<uint8_t>(fabric.verbs_port);
  choice.verbs.gid_index = fabric.verbs_gid_index;
  return choice;
}

}  // namespace rdmacc::bridge

using rdmacc::ClusterWatch;
using rdmacc::Code;
using rdmacc::FabricChoice;
using rdmacc::FabricKind;
using rdmacc::HostPort;
using rdmacc::LoopbackFiles;
using rdmacc::NodeId;
using rdmacc::Result;
using rdmacc::Status;
using rdmacc::bridge::choice_of;
using rdmacc::bridge::cluster_watch;
using rdmacc::bridge::no_throw;
using rdmacc::bridge::succeeds;

bool bridge_fabric_available(const char* kind) {
  CHECK(kind != nullptr);
  return std::string_view(kind) == rdmacc::fabric_name(FabricKind::kShm) ||
         rdmacc::remote_fabric_kind(kind).has_value();
}

const char* bridge_available_fabrics(void) {
  static char names[64];
  size_t length = 0;
  for (const char* name : rdmacc::bridge::kFabrics) {
    if (!bridge_fabric_available(name) || length >= sizeof(names)) continue;
    length += static_cast<size_t>(
        snprintf(names + length, sizeof(names) - length, "%s%s", length == 0 ? "" : ", ", name));
  }
  return names;
}

bool bridge_check_fabric(const BridgeFabric* fabric) {
  return succeeds([&]() -> Status {
    Result<FabricChoice> choice = choice_of(*fabric);
    if (!choice.ok()) return choice.status();
    return rdmacc::check_choice(*choice);
  });
}

int bridge_count_nodes(const char* node_list) {
  CHECK(node_list != nullptr);
  int count = -1;
  succeeds([&]() -> Status {
    Result<std::vector<HostPort>> nodes = rdmacc::parse_node_list(node_list);
    if (nodes.ok()) count = static_cast<int>(nodes->size());
    return nodes.status();
  });
  return count;
}

bool bridge_node_address(const BridgeFabric* fabric, int node, char* host, size_t host_bytes,
                         int* port) {
  CHECK(host != nullptr && host_bytes > 0 && port != nullptr);
  return succeeds([&]() -> Status {
    Result<FabricChoice> choice = choice_of(*fabric);
    if (!choice.ok()) return choice.status();
    if (node < 0 || static_cast<size_t>(node) >= choice->config.nodes.size()) {
      return Status(Code::kNotFound, "there is no such address");
    }
    const HostPort& address = choice->config.nodes[static_cast<size_t>(node)];
    snprintf(host, host_bytes, "%s", address.host.c_str());
    *port = address.port;
    return Status();
  });
}

// ---- Clusters of this host

bool bridge_cluster_exists(const BridgeFabric* fabric) {
  bool exists = false;
  no_throw([&] {
    Result<FabricChoice> choice = choice_of(*fabric);
    exists = choice.ok() && rdmacc::cluster_exists(*choice);
  });
  return exists;
}

void bridge_cluster_destroy(const BridgeFabric* fabric) {
  no_throw([&] {
    Result<FabricChoice> choice = choice_of(*fabric);
    if (choice.ok()) rdmacc::destroy_cluster(*choice);
  });
}

bool bridge_make_loopback(const BridgeFabric* fabric, int nodes, const char* folder) {
  CHECK(nodes > 0 && folder != nullptr);
  return succeeds([&] {
    return LoopbackFiles::make(folder, rdmacc::bridge::text_of(fabric->cluster),
                               rdmacc::bridge::topology_of(*fabric, static_cast<size_t>(nodes)));
  });
}

void bridge_remove_loopback(const char* folder) {
  CHECK(folder != nullptr);
  no_throw([&] { LoopbackFiles::remove(folder); });
}

// ---- Nodes that others run

bool bridge_watch_open(const BridgeFabric* fabric) {
  if (cluster_watch != nullptr) return true;
  return succeeds([&]() -> Status {
    Result<FabricChoice> choice = choice_of(*fabric);
    if (!choice.ok()) return choice.status();
    Result<std::unique_ptr<ClusterWatch>> watch = ClusterWatch::open(choice->config);
    if (watch.ok()) cluster_watch = watch->release();
    return watch.status();
  });
}

void bridge_watch_step(void) {
  if (cluster_watch != nullptr) no_throw([] { cluster_watch->step(); });
}

bool bridge_watch_answers(int node, const char** why) {
  *why = nullptr;
  if (cluster_watch == nullptr) return false;
  const ClusterWatch::NodeNews& news = cluster_watch->node(static_cast<NodeId>(node));
  if (news.known) *why = news.why.c_str();
  return news.answers;
}

uint64_t bridge_watch_memory(uint64_t* answers) {
  *answers = cluster_watch != nullptr ? cluster_watch->answers() : 0;
  return cluster_watch != nullptr ? cluster_watch->memory_id() : 0;
}
