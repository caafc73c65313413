#include "pg_rdmacc/row/passed_rows.h"

#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

/* Of one copy, in its memory, with which it goes. */
struct RdmaccCopiedBytes {
  MemoryContextCallback gone;
  Size count;
};

namespace {

constexpr size_t kFirstRows = 64;
constexpr int kAttemptsMax = 3; /* passes may end early each time, as those of EXISTS do */

Size all_copies; /* bytes, of this session */

void copy_is_gone(void* bytes) {
  const Size count = static_cast<RdmaccCopiedBytes*>(bytes)->count;
  CHECK(count <= all_copies);
  all_copies -= count;
}

void drop(RdmaccPassedRows* passed) {
  if (passed->memory != nullptr) MemoryContextDelete(passed->memory);
  passed->memory = nullptr;
  passed->rows = nullptr;
  passed->count = passed->capacity = 0;
  passed->complete = false;
}

void begin_copy(RdmaccPassedRows* passed, MemoryContext parent) {
  passed->memory = AllocSetContextCreate(parent, "rdmacc passed rows", ALLOCSET_DEFAULT_SIZES);
  passed->bytes = static_cast<RdmaccCopiedBytes*>(
      MemoryContextAllocZero(passed->memory, sizeof(RdmaccCopiedBytes)));
  passed->bytes->gone = {.func = copy_is_gone, .arg = passed->bytes, .next = nullptr};
  MemoryContextRegisterResetCallback(passed->memory, &passed->bytes->gone);
  passed->transaction = rdmacc_transaction_number();
}

/* False: it is too much. */
bool count_bytes(const RdmaccPassedRows* passed) {
  const Size count = MemoryContextMemAllocated(passed->memory, false);
  all_copies += count - passed->bytes->count;
  passed->bytes->count = count;
  return all_copies <= static_cast<Size>(work_mem) * 1024;
}

void make_room(RdmaccPassedRows* passed) {
  if (passed->count < passed->capacity) return;
  passed->capacity = Max(passed->capacity * 2, kFirstRows);
  const Size bytes = passed->capacity * sizeof(BridgeRow);
  passed->rows = static_cast<BridgeRow*>(passed->rows == nullptr
                                             ? MemoryContextAllocHuge(passed->memory, bytes)
                                             : repalloc_huge(passed->rows, bytes));
}

BridgeBytes copy_of(MemoryContext memory, BridgeBytes bytes) {
  char* copy = static_cast<char*>(MemoryContextAlloc(memory, Max(bytes.size, 1)));
  if (bytes.size > 0) memcpy(copy, bytes.data, bytes.size);
  return {copy, bytes.size};
}

}  // namespace

bool rdmacc_passed_rows_begin(RdmaccPassedRows* passed, MemoryContext memory) {
  if (passed->complete && passed->transaction == rdmacc_transaction_number()) return true;
  drop(passed);
  if (passed->passes++ == 0 || passed->attempts == kAttemptsMax) return false;
  passed->attempts++;
  begin_copy(passed, memory);
  return false;
}

void rdmacc_passed_rows_add(RdmaccPassedRows* passed, const BridgeRow* row) {
  if (passed->memory == nullptr || passed->complete) return;
  CHECK(row->found);
  make_room(passed);
  BridgeRow* copy = &passed->rows[passed->count++];
  *copy = *row;
  copy->key = copy_of(passed->memory, row->key);
  copy->row = copy_of(passed->memory, row->row);
  if (count_bytes(passed)) return;
  drop(passed);
  passed->attempts = kAttemptsMax; /* the table is not small */
}

void rdmacc_passed_rows_count(RdmaccPassedRows* passed) {
  if (passed->memory != nullptr && !passed->complete) passed->count++;
}

void rdmacc_passed_rows_end(RdmaccPassedRows* passed) {
  if (passed->memory == nullptr) return;
  passed->complete = true;
}
