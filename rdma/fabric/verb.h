#pragma once
#include "rdma/base/base.h"

namespace rdmacc {

// A byte in a node's region: 16 bits of node, 48 bits of offset. Offset 0 is the superblock,
// so the all-zero address of node 0 serves as null.
struct GlobalAddress {
  uint64_t bits = 0;

  static GlobalAddress make(NodeId node, uint64_t offset) {
    return GlobalAddress{(static_cast<uint64_t>(node) << 48) | offset};
  }
  NodeId node() const { return static_cast<NodeId>(bits >> 48); }
  uint64_t offset() const { return bits & ((1ull << 48) - 1); }
  bool null() const { return bits == 0; }
  GlobalAddress plus(uint64_t bytes) const { return GlobalAddress{bits + bytes}; }
  friend bool operator==(const GlobalAddress&, const GlobalAddress&) = default;
};
static_assert(sizeof(GlobalAddress) == 8);

enum class Opcode : uint8_t { kRead, kWrite, kCompareSwap, kFetchAdd };

// In which order a READ loads its 8-byte words where a CPU carries it out (shm, tcp, an RPC
// handler's verbs to itself). A NIC takes a cache line whole and needs no order. A header is
// looked at first in ascending order (stamps, then lock) and last in descending order (rts,
// lock, then stamps): see engine/storage/layout/tuple.h.
enum class WordOrder : uint8_t { kAscending, kDescending };

// One one-sided operation on one node's region. Offsets, lengths and local buffers are multiples
// of 8. READ and atomics store what they saw in `local`; WRITE takes its bytes from there. The
// buffer is registered memory and belongs to the fabric until the batch has completed.
struct Verb {
  Opcode opcode;
  WordOrder order = WordOrder::kAscending;
  uint32_t bytes = 0;  // READ, WRITE: length; atomics: 8
  uint64_t remote_offset = 0;
  void* local = nullptr;
  uint64_t compare = 0;  // COMPARE_SWAP: expected value
  uint64_t operand = 0;  // COMPARE_SWAP: desired value; FETCH_ADD: addend
};

}  // namespace rdmacc
