#pragma once
#include <optional>
#include <string_view>

#include "rdma/base/base.h"

namespace rdmacc {

enum class FabricKind : uint8_t { kShm, kSim, kTcp, kVerbs };

inline const char* fabric_name(FabricKind kind) {
  constexpr const char* kNames[] = {"shm", "sim", "tcp", "verbs"};
  return kNames[static_cast<size_t>(kind)];
}

// Of those whose members need not be processes of one host.
inline std::optional<FabricKind> remote_fabric_kind(std::string_view name) {
  for (const FabricKind kind : {FabricKind::kTcp, FabricKind::kVerbs}) {
    if (name == fabric_name(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace rdmacc
