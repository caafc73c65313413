#include "rdma/shm/shm_control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace rdmacc {
namespace {

constexpr NodeId kNodesMax = 1024;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t dirty_words_of(const Topology& topology) { return (topology.workers_max + size_t{63}) / 64; }

// Each worker's words have cache lines of their own.
size_t dirty_stride(const Topology& topology) {
  return round_up(dirty_words_of(topology) * 8, kCacheLineBytes);
}

size_t dirty_offset(const Topology& topology) {
  return kShmPageBytes + round_up(topology.workers_max * sizeof(ShmSlot), kShmPageBytes);
}

bool topology_valid(const Topology& t) {
  const uint32_t node_workers = static_cast<uint32_t>(t.nodes) * t.threads_per_node;
  return t.nodes > 0 && t.nodes <= kNodesMax && t.threads_per_node > 0 &&
         node_workers <= t.workers_max && t.workers_max < kNoWorker && t.region_bytes > 0 &&
         t.region_bytes % 8 == 0 && t.region_bytes <= 1ull << 48;
}

}  // namespace

size_t ShmControl::rings_offset(const Topology& topology) {
  return dirty_offset(topology) +
         round_up(topology.workers_max * dirty_stride(topology), kShmPageBytes);
}

size_t ShmControl::total_bytes(const Topology& topology) {
  return rings_offset(topology) + static_cast<size_t>(topology.node_workers()) *
                                      topology.workers_max * 2 * ShmRing::kStrideBytes;
}

ShmControl::ShmControl(std::string cluster, const Topology& topology, std::byte* base, int fd)
    : cluster_(std::move(cluster)),
      topology_(topology),
      base_(base),
      fd_(fd),
      dirty_word_count_(dirty_words_of(topology)) {}

ShmControl::~ShmControl() {
  munmap(base_, total_bytes(topology_));
  close(fd_);
}

// Takes over `fd`, also when it fails.
Result<std::shared_ptr<ShmControl>> ShmControl::map(const std::string& cluster,
                                                    const Topology& topology, int fd) {
  CHECK(fd >= 0);
  void* base = mmap(nullptr, total_bytes(topology), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    const Status status = Status::from_errno("mmap of the control object");
    close(fd);
    return status;
  }
  return std::shared_ptr<ShmControl>(
      new ShmControl(cluster, topology, static_cast<std::byte*>(base), fd));
}

Result<std::shared_ptr<ShmControl>> ShmControl::create(const std::string& cluster,
                                                       const Topology& topology) {
  if (!cluster_name_valid(cluster)) {
    return Status(Code::kInvalidArgument, "cluster names are [A-Za-z0-9_-]{1,64}");
  }
  if (!topology_valid(topology)) {
    return Status(Code::kInvalidArgument, "topology out of range");
  }
  const std::string name = shm_control_name(cluster);
  const int fd = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) {
    return Status(Code::kInvalidArgument, "cluster " + cluster + " exists");
  }
  if (fd < 0) return Status::from_errno("shm_open");
  Status status;
  if (fchmod(fd, 0600) != 0) status = Status::from_errno("fchmod");
  const size_t bytes = total_bytes(topology);
  if (status.ok() && ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    status = Status::from_errno("ftruncate");
  }
  if (status.ok()) status = shm_back(fd, 0, rings_offset(topology));
  if (!status.ok()) {
    close(fd);
    shm_unlink(name.c_str());
    return status;
  }
  Result<std::shared_ptr<ShmControl>> control = map(cluster, topology, fd);
  if (!control.ok()) {
    shm_unlink(name.c_str());
    return control;
  }
  ShmHeader& header = (*control)->header();
  header.layout_version = kShmLayoutVersion;
  header.nodes = topology.nodes;
  header.threads_per_node = topology.threads_per_node;
  header.workers_max = topology.workers_max;
  header.region_bytes = topology.region_bytes;
  header.total_bytes = bytes;
  timespec now;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  header.epoch_ns =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  header.ready.store(kShmReady, std::memory_order_release);
  return control;
}

Result<std::shared_ptr<ShmControl>> ShmControl::attach(const std::string& cluster) {
  if (!cluster_name_valid(cluster)) {
    return Status(Code::kInvalidArgument, "cluster names are [A-Za-z0-9_-]{1,64}");
  }
  Result<int> fd = shm_open_checked(shm_control_name(cluster));
  if (fd.status().code() == Code::kNotFound) {
    return Status(Code::kNotFound, "there is no cluster " + cluster + " on this host");
  }
  if (!fd.ok()) return fd.status();
  struct stat attributes;
  void* page = MAP_FAILED;
  // The creator may be anywhere between shm_open and `ready`.
  if (fstat(*fd, &attributes) == 0 && attributes.st_size >= static_cast<off_t>(kShmPageBytes)) {
    page = mmap(nullptr, kShmPageBytes, PROT_READ, MAP_SHARED, *fd, 0);
  }
  if (page == MAP_FAILED) {
    close(*fd);
    return Status(Code::kNotFound, "cluster " + cluster + " is being created");
  }
  const auto& header = *static_cast<const ShmHeader*>(page);
  Status status;
  Topology topology;
  if (header.ready.load(std::memory_order_acquire) != kShmReady) {
    status = Status(Code::kNotFound, "cluster " + cluster + " is being created");
  } else if (header.layout_version != kShmLayoutVersion) {
    status = Status(Code::kInvalidArgument, "cluster " + cluster + " has another layout version");
  } else {
    topology.nodes = header.nodes;
    topology.threads_per_node = header.threads_per_node;
    topology.workers_max = header.workers_max;
    topology.region_bytes = header.region_bytes;
    if (!topology_valid(topology) || header.total_bytes != total_bytes(topology) ||
        static_cast<uint64_t>(attributes.st_size) < header.total_bytes) {
      status = Status(Code::kCorrupt, "control object of cluster " + cluster);
    }
  }
  munmap(page, kShmPageBytes);
  if (!status.ok()) {
    close(*fd);
    return status;
  }
  return map(cluster, topology, *fd);
}

ShmSlot& ShmControl::slot(WorkerId worker) const {
  CHECK(worker < topology_.workers_max);
  return reinterpret_cast<ShmSlot*>(base_ + kShmPageBytes)[worker];
}

std::atomic<uint64_t>* ShmControl::dirty_words(WorkerId worker) const {
  CHECK(worker < topology_.workers_max);
  return reinterpret_cast<std::atomic<uint64_t>*>(base_ + dirty_offset(topology_) +
                                                  worker * dirty_stride(topology_));
}

bool ShmControl::has_ring(WorkerId from, WorkerId to) const {
  return from < topology_.workers_max && to < topology_.workers_max &&
         (topology_.is_node_worker(from) || topology_.is_node_worker(to));
}

// Every node thread has a row with two rings per worker: to it, and (for coordinators) from it.
size_t ShmControl::ring_offset(WorkerId from, WorkerId to) const {
  CHECK(has_ring(from, to));
  const bool outward = topology_.is_node_worker(from);
  const size_t row = outward ? from : to;
  const size_t column = outward ? to : from;
  const size_t index = (row * topology_.workers_max + column) * 2 + (outward ? 0 : 1);
  return rings_offset(topology_) + index * ShmRing::kStrideBytes;
}

ShmRing ShmControl::ring(WorkerId from, WorkerId to) const {
  return ShmRing(base_ + ring_offset(from, to));
}

Status ShmControl::back(size_t offset, size_t bytes) const { return shm_back(fd_, offset, bytes); }

Status ShmControl::back_rings(WorkerId worker) {
  for (WorkerId node = 0; node < topology_.node_workers(); ++node) {
    RDMACC_RETURN_IF_ERROR(back(ring_offset(worker, node), ShmRing::kStrideBytes));
    RDMACC_RETURN_IF_ERROR(back(ring_offset(node, worker), ShmRing::kStrideBytes));
  }
  return Status::ok_status();
}

}  // namespace rdmacc
