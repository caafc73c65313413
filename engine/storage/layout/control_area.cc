#include "engine/storage/layout/control_area.h"

#include <cstring>

#include "rdma/base/check.h"

namespace rdmacc {

void format_control_area(std::byte* region, const RegionLayout& layout) {
  CHECK(region != nullptr);
  CHECK(layout.directory > layout.control);
  std::memset(region + layout.control, 0, layout.directory - layout.control);
  auto* gate = reinterpret_cast<GateLine*>(region + layout.control);
  gate->epoch = kFirstEpoch;
}

}  // namespace rdmacc
