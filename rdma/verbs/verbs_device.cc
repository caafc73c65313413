#include "rdma/verbs/verbs_device.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace rdmacc {
namespace {

constexpr int kReadsInFlightMax = 16;
constexpr size_t kGidsMax = 256;
constexpr uint8_t kHopsMax = 64;

struct DeviceList {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
};

bool active(ibv_context* context, uint8_t port, ibv_port_attr* attributes) {
  return ibv_query_port(context, port, attributes) == 0 && attributes->state == IBV_PORT_ACTIVE;
}

// The port asked for, or the first active one; 0 if there is none.
uint8_t active_port(ibv_context* context, uint8_t wanted, uint8_t ports) {
  ibv_port_attr attributes;
  for (uint8_t port = 1; port <= ports; ++port) {
    if ((wanted == 0 || wanted == port) && active(context, port, &attributes)) return port;
  }
  return 0;
}

bool of_ipv4(const ibv_gid& gid) {
  constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

// Larger is better: routable before not, an IPv4 address before the link's own.
int rank(const ibv_gid_entry& entry) {
  return (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (of_ipv4(entry.gid) ? 1 : 0);
}

Status no_device(const VerbsOptions& options) {
  if (options.device.empty()) {
    return Status(Code::kUnavailable, "no RDMA device has an active port");
  }
  return Status(Code::kUnavailable,
                "RDMA device " + options.device + " is not there, or its port " +
                    (options.port == 0 ? "" : std::to_string(options.port)) + " is not active");
}

// Memory that is registered must not be shared with children, where the kernel does not care for it
// itself. Once per process, before the first device is opened.
void prepare_for_fork() {
  static std::once_flag once;
  std::call_once(once, [] { static_cast<void>(ibv_fork_init()); });
}

}  // namespace

Status verbs_failure(const char* what) {
  const Status status = Status::from_errno(what);
  if (errno != ENOMEM && errno != EAGAIN) return status;
  return Status(Code::kNoSpace,
                std::string(what) + ": not enough memory may be pinned (see ulimit -l)");
}

uint32_t verbs_random() {
  uint32_t value = 0;
  CHECK(getrandom(&value, sizeof(value), 0) == sizeof(value));
  return value;
}

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(const VerbsOptions& options) {
  prepare_for_fork();
  verbs_process.store(getpid(), std::memory_order_relaxed);
  const DeviceList list;
  for (int i = 0; i < list.count; ++i) {
    const std::string name = ibv_get_device_name(list.devices[i]);
    if (!options.device.empty() && name != options.device) continue;
    std::unique_ptr<VerbsDevice> device(new VerbsDevice());
    device->context_.reset(ibv_open_device(list.devices[i]));
    if (device->context_ == nullptr) {
      if (options.device.empty()) continue;
      return verbs_failure(("ibv_open_device " + name).c_str());
    }
    if (ibv_query_device(device->context_.get(), &device->limits_) != 0) {
      return verbs_failure("ibv_query_device");
    }
    device->port_ =
        active_port(device->context_.get(), options.port, device->limits_.phys_port_cnt);
    if (device->port_ == 0) continue;
    RDMACC_RETURN_IF_ERROR(device->choose_port(options));
    device->domain_.reset(ibv_alloc_pd(device->context_.get()));
    if (device->domain_ == nullptr) return verbs_failure("ibv_alloc_pd");
    return device;
  }
  return no_device(options);
}

Status VerbsDevice::choose_port(const VerbsOptions& options) {
  if (limits_.atomic_cap == IBV_ATOMIC_NONE) {
    return Status(Code::kUnavailable, "RDMA device " + name() + " has no atomic operations");
  }
  ibv_port_attr attributes;
  if (!active(context_.get(), port_, &attributes)) return no_device(options);
  address_.lid = attributes.lid;
  address_.mtu = static_cast<uint8_t>(attributes.active_mtu);
  if (attributes.link_layer == IBV_LINK_LAYER_ETHERNET || options.gid_index >= 0) {
    return choose_gid(options);
  }
  return Status();
}

Status VerbsDevice::choose_gid(const VerbsOptions& options) {
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t count = ibv_query_gid_table(context_.get(), entries.data(), entries.size(), 0);
  if (count < 0) return Status(Code::kSystem, "ibv_query_gid_table failed on " + name());
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& entry : std::span(entries).first(static_cast<size_t>(count))) {
    if (entry.port_num != port_) continue;
    if (options.gid_index >= 0) {
      if (entry.gid_index == static_cast<uint32_t>(options.gid_index)) best = &entry;
    } else if (best == nullptr || rank(entry) > rank(*best)) {
      best = &entry;
    }
  }
  if (best == nullptr || best->gid_index > UINT8_MAX) {
    return Status(Code::kUnavailable,
                  "port " + std::to_string(port_) + " of " + name() + " has no such address (GID)");
  }
  gid_index_ = static_cast<uint8_t>(best->gid_index);
  std::copy_n(best->gid.raw, address_.gid.size(), address_.gid.begin());
  address_.global = 1;
  return Status();
}

uint8_t VerbsDevice::reads_out_max() const {
  return static_cast<uint8_t>(std::clamp(limits_.max_qp_init_rd_atom, 1, kReadsInFlightMax));
}

uint8_t VerbsDevice::reads_in_max() const {
  return static_cast<uint8_t>(std::clamp(limits_.max_qp_rd_atom, 1, kReadsInFlightMax));
}

ibv_ah_attr VerbsDevice::route_to(const VerbsPortAddress& peer) const {
  CHECK(port_ != 0);  // open() has chosen one
  ibv_ah_attr route{};
  route.port_num = port_;
  route.dlid = peer.lid;
  if (address_.global != 0) {
    route.is_global = 1;
    std::copy(peer.gid.begin(), peer.gid.end(), route.grh.dgid.raw);
    route.grh.sgid_index = gid_index_;
    route.grh.hop_limit = kHopsMax;
  }
  return route;
}

bool verbs_device_present() { return VerbsDevice::open(VerbsOptions()).ok(); }

}  // namespace rdmacc
