#pragma once
#include <cstdint>

namespace rdmacc {

// When a scan of a table goes by slots, as these lie in memory (engine/txn/stages/scan_slots.h).
struct SlotScanLimits {
  // It has read so many rows of a node, besides a share of them. UINT32_MAX: never.
  uint32_t rows_min = 4096;
  // So many slots are in the pages where the table's may be, for each of its rows, at most: those
  // of other tables are looked at, too, which costs less than to find a row by its group.
  uint32_t slots_per_row_max = 2;
};

}  // namespace rdmacc
