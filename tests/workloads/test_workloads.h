#pragma once
#include "engine/workloads/registry.h"

// Adds the workloads of this folder to the registry, behind those that rdmacc_bench has: for every
// program with a source that includes this, before main().

namespace rdmacc {

bool add_test_workloads();
inline const bool kTestWorkloadsAdded = add_test_workloads();

}  // namespace rdmacc
