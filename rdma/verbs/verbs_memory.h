#pragma once
#include "rdma/verbs/verbs_device.h"

namespace rdmacc {

// A worker's local buffers: slabs of anonymous memory, in huge pages where there are any, each
// registered once and for local use alone. One thread's.
class VerbsMemory {
 public:
  VerbsMemory(const VerbsDevice& device, bool huge_pages)
      : device_(device), huge_pages_(huge_pages) {}
  ~VerbsMemory();
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;

  // Zeroed, kPageBytes-aligned; kNoSpace when no more may be pinned.
  Result<std::byte*> allocate(size_t bytes);
  // The key of the slab that holds [at, at + bytes): a programmer's error if there is none.
  uint32_t key_of(const void* at, size_t bytes);

 private:
  struct Slab {
    std::byte* start;
    size_t bytes;
    size_t used;
    VerbsHandle<ibv_mr> registration;

    bool holds(const std::byte* at, size_t length) const {
      return at >= start && length <= bytes && at <= start + (bytes - length);
    }
  };

  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kHugePageBytes = 2ull << 20;
  static constexpr size_t kSlabBytesMax = 32ull << 20;

  Status add_slab(size_t bytes_min);
  void* map(size_t bytes) const;

  const VerbsDevice& device_;
  const bool huge_pages_;
  std::vector<Slab> slabs_;
  size_t last_ = 0;  // where key_of() found something last
};

}  // namespace rdmacc
