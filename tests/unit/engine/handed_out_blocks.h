#pragma once
#include "engine/storage/owner/page_table.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {

// Overflow blocks of the nodes that are not free: those that workers keep in advance, and those of
// rows.
inline size_t handed_out_blocks(SimEngine& engine, const Topology& topology) {
  size_t count = 0;
  const RegionLayout layout(topology);
  for (NodeId node = 0; node < topology.nodes; ++node) {
    const std::byte* region = engine.node(node).worker().endpoint().local_region();
    const auto word = [region](uint64_t at) {
      return *reinterpret_cast<const uint64_t*>(region + at);
    };
    for (uint64_t page = 0; page < word(offsetof(Superblock, pages_used)); ++page) {
      const PageWord kind{word(layout.page_table + page * sizeof(uint64_t))};
      if (kind.kind() != PageKind::kOverflow) continue;
      for (uint64_t unit = 0; unit < kPageBytes / kind.value(); ++unit) {
        if (word(layout.page(page) + unit * kind.value()) != 0) ++count;
      }
    }
  }
  return count;
}

}  // namespace rdmacc
