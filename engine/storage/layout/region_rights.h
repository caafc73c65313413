#pragma once
#include <vector>

#include "engine/storage/layout/region_layout.h"
#include "rdma/fabric/region_domain.h"

namespace rdmacc {

// The parts of a region by what peers may do there: only read what the owner alone writes (by its
// CPU), and not change by atomics what is written whole.
std::vector<RegionDomain> region_domains(const RegionLayout& layout);

}  // namespace rdmacc
