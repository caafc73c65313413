#include "rdma/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "rdma/shm_control.h"

namespace rdmacc {
namespace {

// The kernel takes the advice only where shared memory's setting says so.
bool huge_pages_offered() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string setting;
  std::getline(file, setting);
  return setting.find("[advise]") != std::string::npos ||
         setting.find("[always]") != std::string::npos ||
         setting.find("[force]") != std::string::npos;
}

}  // namespace

ShmRegions::ShmRegions(std::string cluster, const Topology& topology, bool huge_pages)
    : cluster_(std::move(cluster)),
      region_bytes_(topology.region_bytes),
      mapped_bytes_((topology.region_bytes + kShmPageBytes - 1) / kShmPageBytes * kShmPageBytes),
      huge_pages_(huge_pages),
      bases_(topology.nodes),
      fds_(topology.nodes, -1),
      backed_(topology.nodes) {}

ShmRegions::~ShmRegions() {
  for (std::atomic<std::byte*>& base : bases_) {
    if (base.load() != nullptr) munmap(base.load(), mapped_bytes_);
  }
  for (const int fd : fds_) {
    if (fd >= 0) close(fd);
  }
}

std::byte* ShmRegions::map(NodeId node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::byte* base = bases_[node].load(std::memory_order_acquire)) return base;
  Result<int> fd = shm_open_checked(shm_region_name(cluster_, node));
  if (!fd.ok()) return nullptr;
  struct stat attributes;
  // Its maker may not have come to ftruncate yet: touching it would raise SIGBUS.
  if (fstat(*fd, &attributes) != 0 || static_cast<uint64_t>(attributes.st_size) < mapped_bytes_) {
    close(*fd);
    return nullptr;
  }
  Result<std::byte*> base = map_locked(node, *fd);
  return base.ok() ? *base : nullptr;
}

// Takes over `fd`, also when it fails.
Result<std::byte*> ShmRegions::map_locked(NodeId node, int fd) {
  void* base =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    const Status status = Status::from_errno("mmap of a region");
    close(fd);
    return status;
  }
  if (huge_pages_ && madvise(base, mapped_bytes_, MADV_HUGEPAGE) == 0 && huge_pages_offered()) {
    huge_pages_used_.store(true, std::memory_order_relaxed);
  }
  fds_[node] = fd;
  bases_[node].store(static_cast<std::byte*>(base), std::memory_order_release);
  return static_cast<std::byte*>(base);
}

Result<std::byte*> ShmRegions::make(NodeId node) {
  CHECK(node < bases_.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::byte* base = bases_[node].load(std::memory_order_acquire)) return base;
  const std::string name = shm_region_name(cluster_, node);
  // Threads of one node come here together, and after a crash the object is there already.
  const int created = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (created < 0 && errno != EEXIST) return Status::from_errno("shm_open");
  if (created >= 0) {
    const bool moded = fchmod(created, 0600) == 0;
    close(created);
    if (!moded) return Status::from_errno("fchmod");
  }
  Result<int> fd = shm_open_checked(name);
  if (!fd.ok()) return fd.status();
  if (ftruncate(*fd, static_cast<off_t>(mapped_bytes_)) != 0) {
    const Status status = Status::from_errno("ftruncate");
    close(*fd);
    return status;
  }
  return map_locked(node, *fd);
}

Status ShmRegions::back(NodeId node, uint64_t offset, uint64_t bytes) {
  CHECK(node < bases_.size());
  if (bytes > region_bytes_ || offset > region_bytes_ - bytes) {
    return Status(Code::kNoSpace, "region of node " + std::to_string(node) + " is used up");
  }
  if (bytes == 0) return Status::ok_status();
  const std::lock_guard<std::mutex> lock(mutex_);
  CHECK(fds_[node] >= 0);
  std::vector<bool>& backed = backed_[node];
  backed.resize((mapped_bytes_ + kChunkBytes - 1) / kChunkBytes);
  for (uint64_t chunk = offset / kChunkBytes; chunk <= (offset + bytes - 1) / kChunkBytes;
       ++chunk) {
    if (backed[chunk]) continue;
    const uint64_t start = chunk * kChunkBytes;
    RDMACC_RETURN_IF_ERROR(
        shm_back(fds_[node], start, std::min(kChunkBytes, mapped_bytes_ - start)));
    backed[chunk] = true;
  }
  return Status::ok_status();
}

}  // namespace rdmacc
