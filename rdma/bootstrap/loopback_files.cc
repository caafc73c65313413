#include "rdma/bootstrap/loopback_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/bootstrap/socket.h"

namespace rdmacc {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr char kSecretName[] = "secret";
constexpr uint16_t kPortMin = 15'000;
constexpr uint16_t kPortsMin = 1'000;  // fewer are not worth drawing from
constexpr int kDrawsMax = 200;

// Where the system begins to take ports for those that dial. Below it no other socket gets one of a
// node's by chance while its node is down.
uint16_t first_dialling_port() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  unsigned port = 0;
  return file >> port && port <= 0xFFFF ? static_cast<uint16_t>(port) : 0;
}

Result<Descriptor> listen_somewhere(uint16_t* port) {
  Result<SocketAddress> address = resolve_address(kHost, 1);
  if (!address.ok()) return address.status();
  const uint16_t end = first_dialling_port();
  for (int draw = 0; draw < kDrawsMax && end >= kPortMin + kPortsMin; ++draw) {
    std::array<unsigned char, 2> random;
    fill_random(random);
    const unsigned number = random[0] * 256u + random[1];
    *port = static_cast<uint16_t>(kPortMin + number % (end - kPortMin));
    address->set_port(*port);
    Result<Descriptor> listener = listen_at(*address, 1);
    if (listener.ok()) return listener;
  }
  address->set_port(0);
  Result<Descriptor> listener = listen_at(*address, 1);
  if (!listener.ok()) return listener;
  Result<uint16_t> given = port_of(*listener);
  if (!given.ok()) return given.status();
  *port = *given;
  return listener;
}

Status make_private(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Status::from_errno("mkdir");
  struct stat seen;
  if (lstat(folder.c_str(), &seen) != 0) return Status::from_errno("lstat");
  if (!S_ISDIR(seen.st_mode) || seen.st_uid != geteuid() || (seen.st_mode & 0077) != 0) {
    return Status(Code::kInvalidArgument,
                  folder + " must be a directory that only its owner, this user, may enter");
  }
  return Status();
}

Status write_file(const std::string& path, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return Status::from_errno("open of the config file");
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Status::from_errno("write of the config file");
  }
  return Status();
}

}  // namespace

Status LoopbackFiles::make(const std::string& folder, const std::string& name,
                           const Topology& topology) {
  RDMACC_RETURN_IF_ERROR(make_private(folder));
  const std::string secret = folder + "/" + kSecretName;
  unlink(config_path(folder).c_str());
  unlink(secret.c_str());
  std::string nodes;
  std::vector<Descriptor> held;  // until the last is found, so that they differ
  for (NodeId node = 0; node < topology.nodes; ++node) {
    uint16_t port = 0;
    Result<Descriptor> listener = listen_somewhere(&port);
    if (!listener.ok()) return listener.status();
    held.push_back(std::move(*listener));
    nodes += (node == 0 ? "" : ", ") + std::string(kHost) + ":" + std::to_string(port);
  }
  RDMACC_RETURN_IF_ERROR(create_secret_file(secret));
  const std::string text = "name = " + name + "\nnodes = " + nodes +
                           "\nsecret_file = " + kSecretName +
                           "\nthreads_per_node = " + std::to_string(topology.threads_per_node) +
                           "\nworkers_max = " + std::to_string(topology.workers_max) +
                           "\nmemory_mb = " + std::to_string(topology.region_bytes >> 20) + "\n";
  RDMACC_RETURN_IF_ERROR(write_file(config_path(folder), text));
  return read_cluster_config(config_path(folder)).status();
}

void LoopbackFiles::remove(const std::string& folder) {
  unlink(config_path(folder).c_str());
  unlink((folder + "/" + kSecretName).c_str());
  rmdir(folder.c_str());
}

}  // namespace rdmacc
