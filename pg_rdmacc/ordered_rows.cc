#include "pg_rdmacc/ordered_rows.h"

#include <algorithm>

#include "pg_rdmacc/row_codec.h"
#include "pg_rdmacc/row_estimate.h"

extern "C" {
#include "utils/memutils.h"
}

namespace {

constexpr size_t kRowsAtFirst = 64; /* and then twice as many, again and again */
/* The least that key and row take. */
constexpr double kRowBytesMin = 32;

bool may_fit(Relation relation) {
  return rdmacc_estimated_rows(relation) * kRowBytesMin <= RDMACC_ORDERED_BYTES_MAX;
}

/* One allocation: the row, then its bytes. */
const BridgeRow* copy_of(MemoryContext context, const BridgeRow* row) {
  auto* copy = static_cast<BridgeRow*>(
      MemoryContextAlloc(context, sizeof(BridgeRow) + row->key.size + row->row.size));
  auto* bytes = reinterpret_cast<char*>(copy + 1);
  *copy = *row;
  memcpy(bytes, row->key.data, row->key.size);
  copy->key.data = bytes;
  memcpy(bytes + row->key.size, row->row.data, row->row.size);
  copy->row.data = bytes + row->key.size;
  return copy;
}

/* Copies rows until the scan ends or memory does; true when all are there. */
bool gather(RdmaccOrderedRows* ordered_rows, Relation relation) {
  size_t room = kRowsAtFirst;
  ordered_rows->gathered = static_cast<RdmaccOrderedRow*>(
      MemoryContextAlloc(ordered_rows->context, room * sizeof(RdmaccOrderedRow)));
  size_t bytes = 0;
  while (bytes <= RDMACC_ORDERED_BYTES_MAX) {
    const BridgeRow* row = rdmacc_rows_next(&ordered_rows->rows, relation);
    if (row == nullptr) return true;
    if (ordered_rows->count == room) {
      room *= 2;
      ordered_rows->gathered = static_cast<RdmaccOrderedRow*>(
          repalloc_huge(ordered_rows->gathered, room * sizeof(RdmaccOrderedRow)));
    }
    bytes += row->key.size + row->row.size;
    ordered_rows->gathered[ordered_rows->count++] = {rdmacc_row_time(row->row),
                                                     copy_of(ordered_rows->context, row)};
  }
  return false;
}

}  // namespace

void rdmacc_ordered_rows_begin(RdmaccOrderedRows* ordered_rows, Relation relation, uint32 table,
                               uint32 visible_before, bool in_order) {
  memset(ordered_rows, 0, sizeof(*ordered_rows));
  rdmacc_rows_begin(&ordered_rows->rows, table, visible_before);
  if (in_order && may_fit(relation)) {
    ordered_rows->context = GenerationContextCreate(
        CurrentMemoryContext, "rows of an rdmacc table in order", ALLOCSET_DEFAULT_SIZES);
  }
}

const BridgeRow* rdmacc_ordered_rows_next(RdmaccOrderedRows* ordered_rows, Relation relation) {
  if (ordered_rows->context != nullptr && ordered_rows->gathered == nullptr &&
      gather(ordered_rows, relation)) {
    std::sort(ordered_rows->gathered, ordered_rows->gathered + ordered_rows->count,
              [](const RdmaccOrderedRow& a, const RdmaccOrderedRow& b) { return a.time < b.time; });
  }
  if (ordered_rows->next < ordered_rows->count) {
    return ordered_rows->gathered[ordered_rows->next++].row;
  }
  const BridgeRow* row = rdmacc_rows_next(&ordered_rows->rows, relation);
  ordered_rows->ended = row == nullptr;
  return row;
}

void rdmacc_ordered_rows_end(RdmaccOrderedRows* ordered_rows) {
  rdmacc_rows_end(&ordered_rows->rows);
  if (ordered_rows->context != nullptr) MemoryContextDelete(ordered_rows->context);
  memset(ordered_rows, 0, sizeof(*ordered_rows));
}
