#pragma once
// The first include of headers in rdma/ and engine/, but for plain data (engine/api). PostgreSQL's
// headers redefine common names and its functions longjmp over destructors, so the engine never
// sees them; the only way from pg_rdmacc/ into the engine is through files that do not include
// postgres.h.
#ifdef POSTGRES_H
#error "rdma/ and engine/ are never compiled together with postgres.h"
#endif

#include <cstddef>
#include <cstdint>

namespace rdmacc {

// Index of a node in the cluster, 0 .. nodes - 1.
using NodeId = uint16_t;

// Cluster-wide number of an endpoint. Node k's thread t has id k * threads_per_node + t;
// coordinators have the ids above. It is also the low 16 bits of every ctts.
using WorkerId = uint16_t;
constexpr WorkerId kNoWorker = 0xFFFF;

constexpr size_t kCacheLineBytes = 64;

}  // namespace rdmacc
