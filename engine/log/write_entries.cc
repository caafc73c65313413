// The Log stage's WRITEs: where verbs are carried out in place words are stored where they belong,
// from where they are.
#include "engine/log/log_ring.h"
#include "rdma/coroutine/in_place.h"

namespace rdmacc {
namespace {

template <typename Port>
Status write_in_place(Port&& port, const RegionLayout& layout,
                      std::span<const LogPlacement> placements, VerbCounters& counters) {
  LostNodes lost;
  for (const LogPlacement& placement : placements) {
    const uint64_t ring = layout.log_ring(placement.ring_of);
    const auto head = port.find(GlobalAddress::make(placement.node, ring), sizeof(LogRingHead));
    const auto entry =
        port.find(GlobalAddress::make(placement.node, log_entry_offset(ring, placement.position)),
                  placement.entry.size());
    if (port.lost(head)) {
      lost.add(placement.node);
      continue;
    }
    port.write(head, 0, &placement.head, sizeof(LogRingHead));
    port.write(entry, 0, placement.entry.data(), placement.entry.size());
    if (!port.failed()) continue;
    lost.add(placement.node);
    port.forget_failure();
  }
  port.end_round();
  counters.doorbells += placements.size() - 1;  // of each node
  return lost.any() ? DoorbellBatch::unreachable() : Status();
}

}  // namespace

Status write_log_entries(const RegionLayout& layout, std::span<const LogPlacement> placements,
                         Scheduler& scheduler, VerbArena& arena, VerbCounters& counters) {
  CHECK(!placements.empty());
  for (const LogPlacement& placement : placements) {
    CHECK(placement.head.incarnation != 0 && !placement.entry.empty());
  }
  if (scheduler.mapped() != nullptr) {
    return write_in_place(MappedPort(scheduler, counters), layout, placements, counters);
  }
  DoorbellBatch batch(scheduler, counters);
  for (const LogPlacement& placement : placements) {
    if (!add_log_writes(layout, placement, arena, batch)) return out_of_registered_memory();
  }
  return batch.execute();
}

}  // namespace rdmacc
