#include "rdma/bootstrap/loopback_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <random>

#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/bootstrap/socket.h"

namespace rdmacc {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr char kSecretName[] = "/secret";
// Below those that Linux gives to sockets by itself: a port that is free now is not taken by
// another connection before its node listens, nor does one that is dialled too early meet itself.
constexpr uint16_t kPortMin = 16'384, kPortMax = 32'767;
constexpr int kPortTries = 200;

Result<Descriptor> listen_at_any(SocketAddress address) {
  std::random_device random;
  std::uniform_int_distribution<uint16_t> port(kPortMin, kPortMax);
  Status status;
  for (int i = 0; i < kPortTries; ++i) {
    address.set_port(port(random));
    Result<Descriptor> listener = listen_at(address, 1);
    if (listener.ok()) return listener;
    status = listener.status();
  }
  return status;
}

}  // namespace

LoopbackCluster::LoopbackCluster(ClusterConfig config)
    : config_(std::move(config)), owner_pid_(getpid()) {}

LoopbackCluster::~LoopbackCluster() {
  if (getpid() == owner_pid_) remove_files(config_);
}

void LoopbackCluster::remove_files(const ClusterConfig& config) {
  unlink(config.secret_file.c_str());
  rmdir(config.secret_file.substr(0, config.secret_file.rfind('/')).c_str());
}

Result<std::unique_ptr<LoopbackCluster>> LoopbackCluster::make(const std::string& name,
                                                               const Topology& topology) {
  ClusterConfig config;
  config.name = name;
  config.topology = topology;
  // All are held until the last is found, so that they differ.
  std::vector<Descriptor> held;
  for (NodeId node = 0; node < topology.nodes; ++node) {
    Result<SocketAddress> any = resolve_address(kHost, 1);
    if (!any.ok()) return any.status();
    Result<Descriptor> listener = listen_at_any(*any);
    if (!listener.ok()) return listener.status();
    Result<uint16_t> port = port_of(*listener);
    if (!port.ok()) return port.status();
    config.nodes.push_back(HostPort{kHost, *port});
    held.push_back(std::move(*listener));
  }
  const char* folder = getenv("TMPDIR");
  std::string made = folder != nullptr && *folder == '/' ? folder : P_tmpdir;
  made += "/rdmacc-XXXXXX";
  if (mkdtemp(made.data()) == nullptr) return Status::from_errno("mkdtemp");
  config.secret_file = made + kSecretName;
  std::unique_ptr<LoopbackCluster> cluster(new LoopbackCluster(config));
  RDMACC_RETURN_IF_ERROR(create_secret_file(config.secret_file));
  RDMACC_RETURN_IF_ERROR(check_cluster_config(config));
  return cluster;
}

}  // namespace rdmacc
