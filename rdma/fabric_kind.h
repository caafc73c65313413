#pragma once
#include "rdma/base/base.h"

namespace rdmacc {

enum class FabricKind : uint8_t { kShm, kSim, kTcp };

inline const char* fabric_name(FabricKind kind) {
  constexpr const char* kNames[] = {"shm", "sim", "tcp"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace rdmacc
