#pragma once
#include "engine/workloads/settings.h"

// The only place that names all workloads of this folder. A program that has more of them adds them
// before it does anything else.

namespace rdmacc {

// Those that there are, in a fixed order.
std::span<const WorkloadKind* const> workload_kinds();
// Behind those that there are already. Their names are new; not while threads use the registry.
void add_workload_kinds(std::span<const WorkloadKind* const> more);
// nullptr: there is none of that name.
const WorkloadKind* find_workload(std::string_view name);
// "smallbank, ycsb, …"
std::string workload_names();

// Makes a workload by its name and the text of its settings (WorkloadSettings::to_string), the
// same in every process. kInvalidArgument says what is wrong.
Result<std::unique_ptr<Workload>> make_workload(std::string_view name, std::string_view settings,
                                                const WorkloadCluster& cluster);

}  // namespace rdmacc
