#pragma once
#include "engine/storage/owner/owned_region.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// Stores to the own region in a fixed order: by verbs to itself while the node serves (so that
// they mix with other processes' atomics on every fabric), by the CPU while it is being opened. A
// crash leaves a prefix of the stores. One user at a time; its coroutine yields in flush() and
// compare_swap(), and in store() when the buffer is full. The buffer is kept as long as the worker.
class OwnerWriter {
 public:
  explicit OwnerWriter(const OwnedRegion& region) : region_(region) {}
  OwnerWriter(const OwnedRegion& region, Worker& worker) : region_(region), worker_(&worker) {}
  OwnerWriter(const OwnerWriter&) = delete;
  OwnerWriter& operator=(const OwnerWriter&) = delete;

  bool opens_node() const { return worker_ == nullptr; }
  // Takes what a round needs beforehand, so that nothing fails half-way for want of memory.
  Status prepare();
  void store(uint64_t offset, uint64_t value) { store_words(offset, &value, 1); }
  void store_words(uint64_t offset, const uint64_t* words, size_t count);
  Status flush();
  // After all earlier stores; *seen is what was there.
  Status compare_swap(uint64_t offset, uint64_t expected, uint64_t desired, uint64_t* seen);

 private:
  uint64_t* room(size_t words);

  const OwnedRegion& region_;
  Worker* const worker_ = nullptr;  // nullptr: the CPU stores
  uint64_t* buffer_ = nullptr;      // registered
  size_t used_words_ = 0;
  std::unique_ptr<DoorbellBatch> batch_;
  Status failed_;
};

}  // namespace rdmacc
