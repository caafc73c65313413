#include "engine/storage/layout/region_layout.h"

#include "engine/storage/layout/control_area.h"
#include "rdma/base/check.h"

namespace rdmacc {

namespace {

constexpr uint64_t kSuperblockBytes = 4096;
constexpr uint64_t kPartAlignment = 4096;
// One page of every kind that a table with rows needs, and as many to spare.
constexpr uint64_t kPagesMin = 16;

// Behind the last page: a header anywhere in it may be read with the largest inline record.
constexpr uint64_t kTailBytes = sizeof(Header) + kRecordInlineMax;

uint64_t pages_begin(uint64_t page_table, uint64_t page_count) {
  return round_up(page_table + page_count * sizeof(uint64_t), kPageBytes);
}

}  // namespace

RegionLayout::RegionLayout(const Topology& topology) {
  region_bytes = topology.region_bytes;
  control = kSuperblockBytes;
  workers_max = topology.workers_max;
  directory = round_up(txn_slots(workers_max), kPartAlignment);
  log_rings = round_up(directory + kDirectoryEntries * sizeof(DirectoryEntry), kPartAlignment);
  nodes = topology.nodes;
  order = round_up(log_rings + topology.workers_max * (64 + kLogRingBytes), kPartAlignment);
  page_table = round_up(order_end(), kPartAlignment);
  page_count = region_bytes > page_table ? (region_bytes - page_table) / kPageBytes : 0;
  while (page_count > 0 &&
         pages_begin(page_table, page_count) + page_count * kPageBytes + kTailBytes >
             region_bytes) {
    --page_count;
  }
  pages = pages_begin(page_table, page_count);
  // Or rows in the last slots would be taken for impossible ones.
  CHECK(page_count == 0 || holds_header(page(page_count) - 64));
}

uint64_t RegionLayout::txn_slots(WorkerId worker) const {
  return worker_line(workers_max) + worker * (kTxnSlotsPerWorker * sizeof(TxnSlot));
}

// Consecutive microseconds are consecutive slots.
uint64_t RegionLayout::txn_slot(uint64_t ctts) const {
  const auto worker = static_cast<WorkerId>(ctts & 0xFFFF);
  return txn_slots(worker) + (ctts >> 16) % kTxnSlotsPerWorker * sizeof(TxnSlot);
}

uint64_t region_bytes_min(const Topology& topology) {
  const RegionLayout layout(topology);
  return pages_begin(layout.page_table, kPagesMin) + kPagesMin * kPageBytes + kTailBytes;
}

}  // namespace rdmacc
