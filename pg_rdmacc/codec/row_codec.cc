#include "pg_rdmacc/codec/row_codec.h"

#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "utils/timestamp.h"
}

namespace {

uint32 stamp;
uint32 stamped_transaction; /* the one that has it */

/* What follows the stamp begins where MinimalTuple and HeapTupleHeader first agree. */
constexpr size_t kMinimalSkipped = offsetof(MinimalTupleData, t_infomask2);
constexpr size_t kHeapSkipped = offsetof(HeapTupleHeaderData, t_infomask2);
constexpr size_t kStampBytes = sizeof(uint32);
constexpr size_t kTimeBytes = sizeof(uint64);
constexpr size_t kRowBytesMin =
    kStampBytes + SizeofMinimalTupleHeader - kMinimalSkipped + kTimeBytes;

uint64 last_time;

bool is_plain(const FormData_pg_attribute* attribute, Datum value) {
  if (attribute->attlen != -1) return true;
  const auto* datum =
      static_cast<const struct varlena*>(static_cast<void*>(DatumGetPointer(value)));
  return !VARATT_IS_EXTERNAL(datum) && !VARATT_IS_COMPRESSED(datum);
}

void check_size(BridgeBytes row) {
  if (row.size >= kRowBytesMin) return;
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                  errmsg("row of %zu bytes in an rdmacc table is too short", row.size)));
}

size_t tuple_length(BridgeBytes row) {
  check_size(row);
  return kHeapSkipped + row.size - kStampBytes - kTimeBytes;
}

/* Of tuple_length() bytes at `data`, aligned as palloc() does. */
void fill_tuple(BridgeBytes row, size_t length, char* data, HeapTuple tuple) {
  uint32 written_by = 0;
  memcpy(&written_by, row.data, kStampBytes);
  tuple->t_len = static_cast<uint32>(length);
  ItemPointerSetInvalid(&tuple->t_self);
  tuple->t_tableOid = InvalidOid;
  tuple->t_data = reinterpret_cast<HeapTupleHeader>(data);
  memset(tuple->t_data, 0, kHeapSkipped);
  ItemPointerSetInvalid(&tuple->t_data->t_ctid);
  memcpy(data + kHeapSkipped, row.data + kStampBytes, length - kHeapSkipped);
  HeapTupleHeaderSetXmin(tuple->t_data, written_by);
}

}  // namespace

uint32 rdmacc_row_stamp(void) {
  if (stamped_transaction != rdmacc_transaction_number()) {
    stamped_transaction = rdmacc_transaction_number();
    /* Other transactions have another one, but for a chance of one in four thousand million. */
    stamp = Max(pg_prng_uint32(&pg_global_prng_state), FirstNormalTransactionId);
  }
  const SubTransactionId subtransaction = GetCurrentSubTransactionId();
  CHECK(subtransaction != InvalidSubTransactionId); /* rows are written in transactions */
  if (subtransaction == TopSubTransactionId) return stamp;
  return Max(hash_combine(stamp, subtransaction), FirstNormalTransactionId);
}

BridgeBytes rdmacc_row_encode(TupleTableSlot* slot) {
  CHECK(!TTS_EMPTY(slot));
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
  static_assert(kMinimalSkipped >= kStampBytes);
  const size_t tuple_bytes = tuple->t_len;
  char* bytes = static_cast<char*>(repalloc(tuple, tuple_bytes + kTimeBytes));
  char* begin = bytes + kMinimalSkipped - kStampBytes;
  const uint32 written_by = rdmacc_row_stamp();
  memcpy(begin, &written_by, kStampBytes);
  last_time = Max(last_time + 1, static_cast<uint64>(GetCurrentTimestamp()));
  memcpy(bytes + tuple_bytes, &last_time, kTimeBytes);
  const BridgeBytes row = {begin, static_cast<size_t>(bytes + tuple_bytes + kTimeBytes - begin)};
  CHECK(row.size >= kRowBytesMin); /* or it could not be decoded */
  if (row.size > RDMACC_ROW_BYTES_MAX) {
    ereport(ERROR,
            (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
             errmsg("row is too big: size %zu, maximum size %d", row.size, RDMACC_ROW_BYTES_MAX),
             errhint("rdmacc keeps rows whole; store large values in a table of another "
                     "access method.")));
  }
  return row;
}

uint32 rdmacc_row_bytes_of(TupleDesc descriptor, int columns) {
  CHECK(columns >= 0 && columns <= descriptor->natts);
  size_t end = MAXALIGN(SizeofHeapTupleHeader + BITMAPLEN(descriptor->natts));
  for (int i = 0; i < columns; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    if (attribute->attlen < 0) return rdmacc::kWholeRow;
    end = att_align_nominal(end, attribute->attalign) + static_cast<size_t>(attribute->attlen);
  }
  /* Decoding takes the last bytes for the time, whatever they are. */
  return static_cast<uint32>(kStampBytes + end - kHeapSkipped + kTimeBytes);
}

uint64 rdmacc_row_time(BridgeBytes row) {
  check_size(row);
  uint64 time = 0;
  memcpy(&time, row.data + row.size - kTimeBytes, kTimeBytes);
  return time;
}

HeapTuple rdmacc_row_decode(BridgeBytes row) {
  const size_t length = tuple_length(row);
  auto* tuple = static_cast<HeapTuple>(palloc(HEAPTUPLESIZE + length));
  fill_tuple(row, length, reinterpret_cast<char*>(tuple) + HEAPTUPLESIZE, tuple);
  return tuple;
}

void rdmacc_row_decode_into(BridgeBytes row, StringInfo bytes, HeapTuple tuple) {
  const size_t length = tuple_length(row);
  CHECK(bytes->data != nullptr && tuple != nullptr);
  resetStringInfo(bytes);
  enlargeStringInfo(bytes, static_cast<int>(length));
  fill_tuple(row, length, bytes->data, tuple);
}
