#include "rdma/shm/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "rdma/shm/shm_control.h"

namespace rdmacc {
namespace {

// Since Linux 6.1; older kernels refuse it.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

constexpr uint64_t kHugePageBytes = ShmRegions::kChunkBytes;

// Maps the object where it can have huge pages: at a multiple of their size.
void* map_aligned(int fd, uint64_t bytes) {
  const uint64_t reserved = bytes + kHugePageBytes;
  void* space =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return MAP_FAILED;
  const auto start = reinterpret_cast<uintptr_t>(space);
  const uintptr_t aligned = (start + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* base = mmap(reinterpret_cast<void*>(aligned), bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (base == MAP_FAILED) {
    munmap(space, reserved);
    return MAP_FAILED;
  }
  if (aligned > start) munmap(space, aligned - start);
  const uintptr_t end = (aligned + bytes + kShmPageBytes - 1) / kShmPageBytes * kShmPageBytes;
  if (end < start + reserved) munmap(reinterpret_cast<void*>(end), start + reserved - end);
  return base;
}

// Makes huge pages of the whole ones in [base, base + bytes), which is at `start` of the object.
// The kernel does so on demand wherever it can, whatever its settings for shared memory say, as
// long as something is there of each; what it cannot, the caller's backing fills with small ones.
bool back_with_huge_pages(int fd, std::byte* base, uint64_t start, uint64_t bytes) {
  const uint64_t whole = bytes / kHugePageBytes * kHugePageBytes;
  if (whole == 0) return false;
  for (uint64_t at = 0; at < whole; at += kHugePageBytes) {
    if (!shm_back(fd, start + at, kShmPageBytes).ok()) return false;
  }
  return madvise(base, whole, MADV_COLLAPSE) == 0;
}

}  // namespace

ShmRegions::ShmRegions(std::string cluster, const Topology& topology, bool huge_pages)
    : cluster_(std::move(cluster)),
      region_bytes_(topology.region_bytes),
      mapped_bytes_((topology.region_bytes + kShmPageBytes - 1) / kShmPageBytes * kShmPageBytes),
      huge_pages_(huge_pages),
      bases_(topology.nodes),
      fds_(topology.nodes, -1),
      ahead_(topology.nodes) {}

ShmRegions::~ShmRegions() {
  for (std::atomic<std::byte*>& base : bases_) {
    if (base.load() != nullptr) munmap(base.load(), mapped_bytes_);
  }
  for (const int fd : fds_) {
    if (fd >= 0) close(fd);
  }
}

std::byte* ShmRegions::map(NodeId node) {
  CHECK(node < bases_.size());
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
  CHECK(fd >= 0 && fds_[node] < 0);
  void* base = map_aligned(fd, mapped_bytes_);
  if (base == MAP_FAILED) {
    const Status status = Status::from_errno("mmap of a region");
    close(fd);
    return status;
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
  Result<int> fd = shm_open_or_make(name);
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
  const uint64_t end = offset + bytes;
  // What is ready does not wait for what the thread is about.
  if (ready_ahead(node, offset) >= end) return Status();
  const std::lock_guard<std::mutex> lock(mutex_);
  offset = ready_ahead(node, offset);
  return offset >= end ? Status() : back_locked(node, offset, end - offset);
}

// Where what is backed ahead from `offset` on ends; `offset`: nothing is.
uint64_t ShmRegions::ready_ahead(NodeId node, uint64_t offset) const {
  const std::lock_guard<std::mutex> lock(ahead_mutex_);
  const Range& ahead = ahead_[node];
  return offset >= ahead.begin ? std::max(offset, ahead.end) : offset;
}

void ShmRegions::back_ahead(NodeId node, uint64_t offset, uint64_t bytes) {
  CHECK(node < bases_.size());
  if (bytes == 0 || bytes > region_bytes_ || offset > region_bytes_ - bytes) return;
  backing_.ask([this, node, offset, end = offset + bytes] {
    for (uint64_t at = offset; at < end; at += kChunkBytes) {
      if (!back_next(node, at, std::min(kChunkBytes, end - at))) return;
    }
  });
}

// A chunk of what is backed ahead. back() waits for no more than that.
bool ShmRegions::back_next(NodeId node, uint64_t offset, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t end = offset + bytes;
  if (ready_ahead(node, offset) >= end) return true;
  if (!back_locked(node, offset, bytes).ok()) return false;
  const std::lock_guard<std::mutex> ahead_lock(ahead_mutex_);
  Range& ahead = ahead_[node];
  const bool goes_on = offset >= ahead.begin && offset <= ahead.end;
  ahead = Range{goes_on ? ahead.begin : offset, end};
  return true;
}

Status ShmRegions::back_locked(NodeId node, uint64_t offset, uint64_t bytes) {
  CHECK(fds_[node] >= 0);
  const uint64_t first_chunk = (offset + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
  const uint64_t chunks_end = (offset + bytes) / kChunkBytes * kChunkBytes;
  if (huge_pages_ && first_chunk < chunks_end &&
      back_with_huge_pages(fds_[node], bases_[node].load() + first_chunk, first_chunk,
                           chunks_end - first_chunk)) {
    huge_pages_used_.store(true, std::memory_order_relaxed);
  }
  const uint64_t start = offset / kShmPageBytes * kShmPageBytes;
  const uint64_t end = (offset + bytes + kShmPageBytes - 1) / kShmPageBytes * kShmPageBytes;
  return shm_back(fds_[node], start, std::min(end, mapped_bytes_) - start);
}

}  // namespace rdmacc
