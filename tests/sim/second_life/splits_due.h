#pragma once
#include <string>

#include "engine/storage/layout/region_layout.h"

namespace rdmacc {

// A group of the table, in a node's region as it lies there, whose chains are so long that it must
// have been split when they grew, if rows are only added: empty if there is none.
std::string find_split_due(const std::byte* region, const RegionLayout& layout, TableId table);

}  // namespace rdmacc
