#include "rdma/bootstrap/claim_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rdma/base/shared_object.h"

namespace rdmacc {
namespace {

constexpr uint64_t kReady = 0x72646D6163633033;
constexpr uint32_t kLayoutVersion = 2;

}  // namespace

struct ClaimTable::Header {
  uint64_t ready;
  uint32_t layout_version;
  uint16_t nodes, threads_per_node, workers_max;
  uint16_t reserved;
  uint64_t region_bytes;
  uint64_t epoch_ns;
  uint64_t memory_id;
  uint32_t first_incarnation;
  uint32_t reserved_2;
};

std::string member_object_name(const std::string& cluster, const std::string& what) {
  return "/rdmacc.tcp." + cluster + "." + what;
}

uint64_t monotonic_now_ns() {
  timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Result<int> lock_node(const std::string& cluster, NodeId node) {
  Result<int> fd = shm_open_or_make(member_object_name(cluster, "lock" + std::to_string(node)));
  if (!fd.ok()) return fd;
  if (flock(*fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(*fd);
  return Status(Code::kUnavailable, "node " + std::to_string(node) + " is running");
}

void unlock_node_for_good(const std::string& cluster, NodeId node) {
  shm_unlink(member_object_name(cluster, "lock" + std::to_string(node)).c_str());
}

Result<std::unique_ptr<ClaimTable>> ClaimTable::open(const ClusterConfig& config) {
  const Topology& topology = config.topology;
  Result<int> fd = shm_open_or_make(member_object_name(config.name, "members"));
  if (!fd.ok()) return fd.status();
  static_assert(sizeof(Header) <= kCacheLineBytes);
  const size_t bytes = kCacheLineBytes + topology.workers_max * sizeof(ClaimSlot);
  struct stat attributes;
  Status status;
  bool fresh = false;
  if (fstat(*fd, &attributes) != 0) {
    status = Status::from_errno("fstat");
  } else if (attributes.st_size == 0) {
    fresh = true;
    status = shm_back(*fd, 0, bytes);
  } else if (static_cast<size_t>(attributes.st_size) != bytes) {
    status = Status(Code::kInvalidArgument,
                    "the members of cluster " + config.name + " on this host are of another size");
  }
  void* base = MAP_FAILED;
  if (status.ok()) base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (status.ok() && base == MAP_FAILED) status = Status::from_errno("mmap");
  close(*fd);
  if (!status.ok()) return status;
  std::unique_ptr<ClaimTable> table(
      new ClaimTable(static_cast<std::byte*>(base), bytes, topology.workers_max));
  Header& header = *static_cast<Header*>(base);
  // A maker that died before `ready` has given out no claim.
  if (fresh || __atomic_load_n(&header.ready, __ATOMIC_ACQUIRE) == 0) {
    header.layout_version = kLayoutVersion;
    header.nodes = topology.nodes;
    header.threads_per_node = topology.threads_per_node;
    header.workers_max = topology.workers_max;
    header.region_bytes = topology.region_bytes;
    header.epoch_ns = monotonic_now_ns();
    const auto drawn = random_secret<RandomToken>();
    std::memcpy(&header.memory_id, drawn.data(), sizeof(uint64_t));
    header.memory_id |= 1;  // 0 is none
    std::memcpy(&header.first_incarnation, drawn.data() + sizeof(uint64_t), sizeof(uint32_t));
    header.first_incarnation &= INT32_MAX;  // they grow, for as long as the table is there
    __atomic_store_n(&header.ready, kReady, __ATOMIC_RELEASE);
    return table;
  }
  if (header.ready != kReady || header.layout_version != kLayoutVersion) {
    return Status(Code::kCorrupt, "the members of cluster " + config.name);
  }
  if (header.nodes != topology.nodes || header.threads_per_node != topology.threads_per_node ||
      header.workers_max != topology.workers_max || header.region_bytes != topology.region_bytes) {
    return Status(Code::kInvalidArgument, "cluster " + config.name +
                                              " was started with other nodes, threads_per_node, " +
                                              "workers_max or memory_mb on this host");
  }
  for (WorkerId w = 0; w < topology.workers_max; ++w) {
    if (table->slot(w).state.load() > ClaimState::kDead) {
      return Status(Code::kCorrupt, "the members of cluster " + config.name);
    }
  }
  return table;
}

void ClaimTable::destroy(const std::string& cluster) {
  shm_unlink(member_object_name(cluster, "members").c_str());
}

bool ClaimTable::exists(const std::string& cluster) {
  const int fd = shm_open(member_object_name(cluster, "members").c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

ClaimTable::~ClaimTable() { munmap(base_, bytes_); }

ClaimSlot& ClaimTable::slot(WorkerId worker) {
  CHECK(worker < workers_);
  return reinterpret_cast<ClaimSlot*>(base_ + kCacheLineBytes)[worker];
}

uint64_t ClaimTable::memory_id() const { return reinterpret_cast<const Header*>(base_)->memory_id; }

uint32_t ClaimTable::first_incarnation() const {
  return reinterpret_cast<const Header*>(base_)->first_incarnation;
}

uint64_t ClaimTable::epoch_ns() const { return reinterpret_cast<const Header*>(base_)->epoch_ns; }

}  // namespace rdmacc
