#include "engine/storage/layout/region_rights.h"

namespace rdmacc {

std::vector<RegionDomain> region_domains(const RegionLayout& layout) {
  const auto from_to = [](uint64_t from, uint64_t to, bool write, bool atomic) {
    return RegionDomain{from, to - from, write, atomic};
  };
  return {from_to(0, layout.control, false, false),
          from_to(layout.control, layout.directory, true, true),
          from_to(layout.directory, layout.log_rings, false, false),
          from_to(layout.log_rings, layout.page_table, true, false),
          from_to(layout.page_table, layout.pages, false, false),
          from_to(layout.pages, layout.region_bytes, true, true)};
}

}  // namespace rdmacc
