#include "engine/workloads/registry.h"

#include <vector>

#include "engine/workloads/smallbank.h"
#include "engine/workloads/tatp.h"
#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpce.h"
#include "engine/workloads/ycsb.h"

namespace rdmacc {
namespace {

std::vector<const WorkloadKind*>& kinds() {
  static std::vector<const WorkloadKind*> kinds{&kSmallbankKind, &kYcsbKind, &kTpccKind, &kTatpKind,
                                                &kTpceKind};
  return kinds;
}

}  // namespace

std::span<const WorkloadKind* const> workload_kinds() { return kinds(); }

void add_workload_kinds(std::span<const WorkloadKind* const> more) {
  for (const WorkloadKind* kind : more) {
    CHECK(find_workload(kind->name) == nullptr);
    kinds().push_back(kind);
  }
}

const WorkloadKind* find_workload(std::string_view name) {
  for (const WorkloadKind* kind : kinds()) {
    if (name == kind->name) return kind;
  }
  return nullptr;
}

std::string workload_names() {
  std::string names;
  for (const WorkloadKind* kind : kinds())
    names += (names.empty() ? "" : ", ") + std::string(kind->name);
  return names;
}

Result<std::unique_ptr<Workload>> make_workload(std::string_view name, std::string_view settings,
                                                const WorkloadCluster& cluster) {
  const WorkloadKind* kind = find_workload(name);
  if (kind == nullptr) {
    return Status(Code::kInvalidArgument, "there is no workload \"" + std::string(name) +
                                              "\"; possible are " + workload_names());
  }
  WorkloadSettings values(kind->settings);
  RDMACC_RETURN_IF_ERROR(values.parse(settings));
  Result<std::unique_ptr<Workload>> made = kind->make(values, cluster);
  if (made.ok()) (*made)->set_settings(std::string(settings));
  return made;
}

}  // namespace rdmacc
