#include "rdma/verbs/verbs_memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace rdmacc {

VerbsMemory::~VerbsMemory() {
  for (Slab& slab : slabs_) {
    slab.registration.reset();
    munmap(slab.start, slab.bytes);
  }
}

Result<std::byte*> VerbsMemory::allocate(size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "empty registered buffer");
  const size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (slabs_.empty() || slabs_.back().bytes - slabs_.back().used < rounded) {
    RDMACC_RETURN_IF_ERROR(add_slab(rounded));
  }
  Slab& slab = slabs_.back();
  std::byte* const at = slab.start + slab.used;
  slab.used += rounded;
  return at;
}

// Each slab is twice as large as the one before: few registrations, and little for workers that
// need little.
Status VerbsMemory::add_slab(size_t bytes_min) {
  CHECK(bytes_min > 0 && bytes_min % kPageBytes == 0);
  const size_t next = slabs_.empty() ? kHugePageBytes : 2 * slabs_.back().bytes;
  const size_t wanted = std::max(bytes_min, std::min(next, kSlabBytesMax));
  const size_t bytes = (wanted + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* const start = map(bytes);
  if (start == MAP_FAILED) return Status(Code::kNoSpace, "no memory for local buffers");
  VerbsHandle<ibv_mr> registration(
      ibv_reg_mr(device_.domain(), start, bytes, IBV_ACCESS_LOCAL_WRITE));
  if (registration == nullptr) {
    const Status status = verbs_failure("registering local buffers");
    munmap(start, bytes);
    return status;
  }
  slabs_.push_back({static_cast<std::byte*>(start), bytes, 0, std::move(registration)});
  return Status();
}

void* VerbsMemory::map(size_t bytes) const {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (huge_pages_) {
    void* const huge = mmap(nullptr, bytes, kProtection, kFlags | MAP_HUGETLB, -1, 0);
    if (huge != MAP_FAILED) return huge;  // huge pages are reserved
  }
  void* const start = mmap(nullptr, bytes, kProtection, kFlags, -1, 0);
  if (start != MAP_FAILED && huge_pages_) {
    static_cast<void>(madvise(start, bytes, MADV_HUGEPAGE));
  }
  return start;
}

uint32_t VerbsMemory::key_of(const void* at, size_t bytes) {
  const auto* byte = static_cast<const std::byte*>(at);
  if (last_ < slabs_.size() && slabs_[last_].holds(byte, bytes)) {
    return slabs_[last_].registration->lkey;
  }
  for (last_ = 0; last_ < slabs_.size(); ++last_) {
    if (slabs_[last_].holds(byte, bytes)) return slabs_[last_].registration->lkey;
  }
  CHECK(!"a verb's local buffer is not registered");
  return 0;
}

}  // namespace rdmacc
