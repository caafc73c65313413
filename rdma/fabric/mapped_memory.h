#pragma once
#include <vector>

#include "rdma/base/check.h"
#include "rdma/fabric/cpu_verbs.h"

namespace rdmacc {

// The regions of all nodes as this process maps them, with atomics that mix with all others': what
// verbs do can be done here in place, by the thread that wants it, at once and in the order in
// which it asks. F1 to F3 of fabric.h hold. One per endpoint, its thread alone.
class MappedMemory {
 public:
  MappedMemory(NodeId nodes, uint64_t region_bytes) : region_bytes_(region_bytes), bases_(nodes) {}
  virtual ~MappedMemory() = default;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  // False: the node has no region (yet), and nothing was done.
  [[gnu::always_inline]] bool read(GlobalAddress from, void* local, size_t bytes, WordOrder order) {
    const uint64_t* remote = words(from, bytes, local);
    if (remote == nullptr) return false;
    cpu_.read(remote, static_cast<uint64_t*>(local), bytes / 8, order);
    return true;
  }
  [[gnu::always_inline]] bool write(GlobalAddress to, const void* local, size_t bytes) {
    uint64_t* remote = words(to, bytes, local);
    if (remote == nullptr) return false;
    cpu_.write(remote, static_cast<const uint64_t*>(local), bytes / 8);
    return true;
  }
  bool compare_swap(GlobalAddress at, uint64_t expected, uint64_t desired, uint64_t* seen) {
    uint64_t* remote = words(at, 8, seen);
    if (remote == nullptr) return false;
    *seen = cpu_.compare_swap(remote, expected, desired);
    return true;
  }
  // The same where words() has found them.
  void fence() { cpu_.fence(); }  // before reads that have none of their own
  [[gnu::always_inline]] void read_line(const uint64_t* remote, void* local,
                                        WordOrder order) const {
    cpu_.read_line(remote, static_cast<uint64_t*>(local), order);
  }
  [[gnu::always_inline]] void read_fenced(const uint64_t* remote, void* local, size_t bytes,
                                          WordOrder order) const {
    cpu_.read_fenced(remote, static_cast<uint64_t*>(local), bytes / 8, order);
  }
  void write_words(uint64_t* remote, const void* local, size_t bytes) {
    cpu_.write(remote, static_cast<const uint64_t*>(local), bytes / 8);
  }
  uint64_t fetch_add_word(uint64_t* remote, uint64_t addend) {
    return cpu_.fetch_add(remote, addend);
  }
  uint64_t compare_swap_word(uint64_t* remote, uint64_t expected, uint64_t desired) {
    return cpu_.compare_swap(remote, expected, desired);
  }
  bool fetch_add(GlobalAddress at, uint64_t addend, uint64_t* seen) {
    uint64_t* remote = words(at, 8, seen);
    if (remote == nullptr) return false;
    *seen = cpu_.fetch_add(remote, addend);
    return true;
  }

  // Where so many bytes of whole words lie; nullptr: the node has no region (yet).
  [[gnu::always_inline]] uint64_t* words(GlobalAddress at, size_t bytes) {
    const uint64_t offset = at.offset();
    CHECK(at.node() < bases_.size() && bytes > 0 && (bytes | offset) % 8 == 0);
    CHECK(bytes <= region_bytes_ && offset <= region_bytes_ - bytes);
    std::byte*& base = bases_[at.node()];
    if (base == nullptr) [[unlikely]] {
      base = map(at.node());
      if (base == nullptr) return nullptr;
    }
    return reinterpret_cast<uint64_t*>(base + offset);
  }

  // The same of an address that was found to lie within a region.
  uint64_t* words_within(GlobalAddress at) {
    DCHECK(at.node() < bases_.size() && at.offset() % 8 == 0 && at.offset() < region_bytes_);
    std::byte*& base = bases_[at.node()];
    if (base == nullptr) [[unlikely]] {
      base = map(at.node());
      if (base == nullptr) return nullptr;
    }
    return reinterpret_cast<uint64_t*>(base + at.offset());
  }

  // Where the node's region is mapped; nullptr: it has none (yet).
  std::byte* region(NodeId node) {
    CHECK(node < bases_.size());
    if (bases_[node] == nullptr) bases_[node] = map(node);
    return bases_[node];
  }

  // Of one line, or of a header and the lines in which most records end.
  [[gnu::always_inline]] void prefetch_line(GlobalAddress at) {
    const std::byte* base = bases_.data()[at.node()];
    if (base != nullptr) __builtin_prefetch(base + at.offset());
  }
  [[gnu::always_inline]] void prefetch_slot(GlobalAddress at) {
    const std::byte* base = bases_.data()[at.node()];
    if (base == nullptr) return;
    const std::byte* header = base + at.offset();
    __builtin_prefetch(header);
    __builtin_prefetch(header + kCacheLineBytes);
    __builtin_prefetch(header + 2 * kCacheLineBytes);
  }
  // Of a few lines, for a read that is soon to come; the hardware follows a longer run itself.
  // Inlined by force: as a function of its own it has no effect that GCC 12 knows of, and every
  // call of it is dropped.
  [[gnu::always_inline]] void prefetch(GlobalAddress from, size_t bytes) {
    constexpr size_t kLinesMax = 8;
    const std::byte* base = bases_[from.node()];
    if (base == nullptr || from.offset() >= region_bytes_) return;
    const uint64_t lead = from.offset() % kCacheLineBytes;
    const std::byte* line = base + from.offset() - lead;
    const size_t lines = (lead + bytes + kCacheLineBytes - 1) / kCacheLineBytes;
    for (size_t i = 0; i < lines && i < kLinesMax; ++i, line += kCacheLineBytes) {
      __builtin_prefetch(line);
    }
  }

 protected:
  // The node's region, when it is first touched; nullptr as long as it has none.
  virtual std::byte* map(NodeId node) = 0;

 private:
  [[gnu::always_inline]] uint64_t* words(GlobalAddress at, size_t bytes, const void* local) {
    CHECK(local != nullptr && reinterpret_cast<uintptr_t>(local) % 8 == 0);
    return words(at, bytes);
  }

  const uint64_t region_bytes_;
  std::vector<std::byte*> bases_;  // by node; nullptr: not mapped yet
  CpuVerbs cpu_;
};

}  // namespace rdmacc
