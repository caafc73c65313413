#include "pg_rdmacc/row_codec.h"

#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "common/pg_prng.h"
#include "fmgr.h"
}

namespace {

uint32 stamp;
uint32 stamped_transaction; /* the one that has it */

/* What follows the stamp begins where MinimalTuple and HeapTupleHeader first agree. */
constexpr size_t kMinimalSkipped = offsetof(MinimalTupleData, t_infomask2);
constexpr size_t kHeapSkipped = offsetof(HeapTupleHeaderData, t_infomask2);

bool is_plain(const FormData_pg_attribute* attribute, Datum value) {
  if (attribute->attlen != -1) return true;
  const auto* datum =
      static_cast<const struct varlena*>(static_cast<void*>(DatumGetPointer(value)));
  return !VARATT_IS_EXTERNAL(datum) && !VARATT_IS_COMPRESSED(datum);
}

}  // namespace

uint32 rdmacc_row_stamp(void) {
  if (stamped_transaction != rdmacc_transaction_number()) {
    stamped_transaction = rdmacc_transaction_number();
    /* Other transactions have another one, but for a chance of one in four thousand million. */
    stamp = Max(pg_prng_uint32(&pg_global_prng_state), FirstNormalTransactionId);
  }
  return stamp;
}

BridgeBytes rdmacc_row_encode(TupleTableSlot* slot) {
  slot_getallattrs(slot);
  TupleDesc descriptor = slot->tts_tupleDescriptor;
  const int count = descriptor->natts;
  auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<Size>(Max(count, 1))));
  auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * static_cast<Size>(Max(count, 1))));
  for (int i = 0; i < count; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    nulls[i] = slot->tts_isnull[i] || attribute->attisdropped;
    values[i] = slot->tts_values[i];
    if (!nulls[i] && !is_plain(attribute, values[i])) {
      values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
    }
  }
  MinimalTuple tuple = heap_form_minimal_tuple(descriptor, values, nulls);
  static_assert(kMinimalSkipped >= sizeof(stamp));
  char* bytes = reinterpret_cast<char*>(tuple) + kMinimalSkipped - sizeof(stamp);
  const uint32 written_by = rdmacc_row_stamp();
  memcpy(bytes, &written_by, sizeof(written_by));
  const BridgeBytes row = {bytes, tuple->t_len - kMinimalSkipped + sizeof(stamp)};
  if (row.size > RDMACC_ROW_BYTES_MAX) {
    ereport(ERROR,
            (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
             errmsg("row is too big: size %zu, maximum size %d", row.size, RDMACC_ROW_BYTES_MAX),
             errhint("rdmacc keeps rows whole; store large values in a table of another "
                     "access method.")));
  }
  return row;
}

HeapTuple rdmacc_row_decode(BridgeBytes row) {
  uint32 written_by = 0;
  if (row.size < sizeof(written_by) + SizeofMinimalTupleHeader - kMinimalSkipped) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("row of %zu bytes in an rdmacc table is too short", row.size)));
  }
  memcpy(&written_by, row.data, sizeof(written_by));
  const size_t length = kHeapSkipped + row.size - sizeof(written_by);
  auto* tuple = static_cast<HeapTuple>(palloc(HEAPTUPLESIZE + length));
  tuple->t_len = static_cast<uint32>(length);
  ItemPointerSetInvalid(&tuple->t_self);
  tuple->t_tableOid = InvalidOid;
  tuple->t_data = reinterpret_cast<HeapTupleHeader>(reinterpret_cast<char*>(tuple) + HEAPTUPLESIZE);
  memset(tuple->t_data, 0, kHeapSkipped);
  ItemPointerSetInvalid(&tuple->t_data->t_ctid);
  memcpy(reinterpret_cast<char*>(tuple->t_data) + kHeapSkipped, row.data + sizeof(written_by),
         row.size - sizeof(written_by));
  HeapTupleHeaderSetXmin(tuple->t_data, written_by);
  return tuple;
}
