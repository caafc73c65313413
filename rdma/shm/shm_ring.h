#pragma once
#include <atomic>
#include <cstddef>
#include <span>

#include "rdma/base/base.h"
#include "rdma/base/check.h"

// Datagrams from one worker to one other: a byte ring in shared memory with one producer and one
// consumer. A record is published by one store of `tail`, and consumed by one store of `head`;
// a process that dies in between leaves a ring that its next owner takes over as it is.
//
//   record: | bytes 4 | sender's incarnation 4 | receiver's incarnation 4 | 0 | payload, to 8 |
//
// A record does not wrap; what is left at the end is skipped by a marker. Records between other
// incarnations than the present ones are left-overs and dropped.

namespace rdmacc {

constexpr size_t kShmRingBytes = 64 * 1024;
constexpr uint32_t kShmDatagramBytesMax = 4096;

struct ShmRingHeader {
  alignas(kCacheLineBytes) std::atomic<uint64_t> head;  // consumer's; both only grow
  alignas(kCacheLineBytes) std::atomic<uint64_t> tail;  // producer's
};
static_assert(sizeof(ShmRingHeader) == 2 * kCacheLineBytes);

struct ShmIncarnations {
  uint32_t from;
  uint32_t to;
  friend bool operator==(const ShmIncarnations&, const ShmIncarnations&) = default;
};

// A view of a ring; cheap to copy. An end that stays with one view reads what the other end writes
// only when it has to: a line that two processors write in turns costs more than all else here.
class ShmRing {
 public:
  static constexpr size_t kHeaderBytes = 4096;
  static constexpr size_t kStrideBytes = kHeaderBytes + kShmRingBytes;

  explicit ShmRing(std::byte* base)
      : header_(*reinterpret_cast<ShmRingHeader*>(base)), bytes_(base + kHeaderBytes) {}

  // Producer: false when there is no room.
  bool push(ShmIncarnations incarnations, std::span<const std::byte> datagram);

  // Consumer: is there anything to look at? In one order with the producer's push() and what both
  // do before and after it by sequentially consistent accesses.
  bool anything() const {
    return header_.tail.load(std::memory_order_seq_cst) !=
           header_.head.load(std::memory_order_relaxed);
  }
  // Consumer: the bytes that are there are about to be read.
  void prefetch() const;
  // Consumer: the next datagram between these incarnations, in place; empty span when there is
  // none. It stays valid until pop().
  std::span<const std::byte> front(ShmIncarnations incarnations);
  void pop();
  // Consumer: forgets everything that was sent so far. For a new owner of the receiving end.
  void discard();

 private:
  struct Record {
    uint32_t bytes;
    ShmIncarnations incarnations;
    uint32_t reserved;
  };
  static_assert(sizeof(Record) == 16);
  static constexpr uint32_t kSkip = UINT32_MAX;  // as `bytes`: go on at the ring's start

  static uint64_t record_bytes(uint64_t payload) {
    return sizeof(Record) + ((payload + 7) & ~7ull);
  }

  ShmRingHeader& header_;
  std::byte* const bytes_;
  uint64_t head_seen_ = 0;  // producer: at least so much has been consumed
};

}  // namespace rdmacc
