#pragma once
#include "rdma/fabric/fabric.h"

namespace rdmacc {

// What fabrics ask of a chain: whole words within the region. Whether a buffer is registered is for
// each to check as it can.
inline void check_chain(NodeId node, std::span<const Verb> chain, const Topology& topology) {
  CHECK(node < topology.nodes && !chain.empty());
  for (const Verb& verb : chain) {
    CHECK(verb.bytes > 0 && verb.bytes % 8 == 0 && verb.remote_offset % 8 == 0);
    CHECK(verb.bytes <= topology.region_bytes &&
          verb.remote_offset <= topology.region_bytes - verb.bytes);
    CHECK(verb.local != nullptr && reinterpret_cast<uintptr_t>(verb.local) % 8 == 0);
    CHECK(verb.opcode == Opcode::kRead || verb.opcode == Opcode::kWrite || verb.bytes == 8);
  }
}

}  // namespace rdmacc
