#include "pg_rdmacc/query/told_rows.h"

extern "C" {
#include "common/hashfn.h"
#include "executor/tuptable.h"
#include "fmgr.h"
}

namespace {

constexpr uint64 kNullHash = 0x9E3779B97F4A7C15;

uint64 hash_bytes_of(const void* bytes, Size length) {
  return hash_bytes_extended(static_cast<const unsigned char*>(bytes), static_cast<int>(length), 0);
}

uint64 hash_text(const char* text) {
  return text != nullptr ? hash_bytes_of(text, strlen(text)) : kNullHash;
}

uint64 hash_value(Datum value, const FormData_pg_attribute* attribute) {
  if (attribute->attbyval) return hash_bytes_of(&value, sizeof(value));
  void* pointer = DatumGetPointer(value);
  if (attribute->attlen == -2) return hash_bytes_of(pointer, strlen(DatumGetCString(value)));
  if (attribute->attlen > 0) {
    return hash_bytes_of(pointer, static_cast<Size>(attribute->attlen));
  }
  struct varlena* plain = pg_detoast_datum_packed(static_cast<struct varlena*>(pointer));
  const uint64 hash = hash_bytes_of(VARDATA_ANY(plain), VARSIZE_ANY_EXHDR(plain));
  if (plain != pointer) pfree(plain);
  return hash;
}

uint64 hash_row(TupleTableSlot* slot) {
  slot_getallattrs(slot);
  const TupleDesc type = slot->tts_tupleDescriptor;
  uint64 hash = 0;
  for (int i = 0; i < type->natts; i++) {
    const uint64 value =
        slot->tts_isnull[i] ? kNullHash : hash_value(slot->tts_values[i], TupleDescAttr(type, i));
    hash = hash_combine64(hash, value);
  }
  return hash_bytes_of(&hash, sizeof(hash)); /* rows of equal columns do not add up to another's */
}

RdmaccToldRows* rows_of(DestReceiver* receiver) {
  return reinterpret_cast<RdmaccToldRows*>(receiver);
}

bool receive(TupleTableSlot* slot, DestReceiver* receiver) {
  RdmaccToldRows* rows = rows_of(receiver);
  rows->told.rows++;
  const uint64 hash = hash_row(slot);
  rows->told.hash += hash;
  rows->told.in_order = hash_combine64(rows->told.in_order, hash);
  return rows->next->receiveSlot(slot, rows->next);
}

void start(DestReceiver* receiver, int operation, TupleDesc type) {
  CHECK(type != nullptr && rows_of(receiver)->next != nullptr);
  rows_of(receiver)->next->rStartup(rows_of(receiver)->next, operation, type);
}

void shut_down(DestReceiver* receiver) {
  rows_of(receiver)->next->rShutdown(rows_of(receiver)->next);
}

/* Its memory, and the next one, are the caller's. */
void destroy(DestReceiver*) {}

}  // namespace

void rdmacc_tell_rows(RdmaccToldRows* rows, DestReceiver* next) {
  CHECK(next != nullptr);
  memset(rows, 0, sizeof(*rows));
  rows->receiver.receiveSlot = receive;
  rows->receiver.rStartup = start;
  rows->receiver.rShutdown = shut_down;
  rows->receiver.rDestroy = destroy;
  rows->receiver.mydest = next->mydest;
  rows->next = next;
}

void rdmacc_tell_again(RdmaccToldRows* rows) { memset(&rows->told, 0, sizeof(rows->told)); }

void rdmacc_tell_error(RdmaccTold* told, MemoryContext context) {
  const MemoryContext previous = MemoryContextSwitchTo(context);
  ErrorData* error = CopyErrorData();
  told->sqlstate = error->sqlerrcode;
  const char* const parts[] = {error->message,       error->detail,         error->hint,
                               error->schema_name,   error->table_name,     error->column_name,
                               error->datatype_name, error->constraint_name};
  told->message = 0;
  for (const char* part : parts) told->message = hash_combine64(told->message, hash_text(part));
  FreeErrorData(error);
  MemoryContextSwitchTo(previous);
}

bool rdmacc_told_the_same(const RdmaccTold* one, const RdmaccTold* other, bool ordered) {
  if (one->sqlstate != 0 || other->sqlstate != 0) {
    return one->sqlstate == other->sqlstate && one->message == other->message;
  }
  if (one->rows != other->rows || one->hash != other->hash) return false;
  /* Of utility statements that return rows not every command tag has their number. */
  if (one->rows == 0) return one->processed == other->processed;
  return !ordered || one->in_order == other->in_order;
}
