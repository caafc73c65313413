#include "pg_rdmacc/codec/row_codec.h"

#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "fmgr.h"
}

namespace {

uint32 stamp;
uint32 stamped_transaction; /* the one that has it */

constexpr size_t kStampBytes = sizeof(uint32);
constexpr unsigned kHasNulls = 0x80, kMoreAttributes = 0x40;
constexpr int kAttributeBits = 6; /* in the first byte */
constexpr size_t kAttributeBytesMax = 2;
static_assert(MaxHeapAttributeNumber < 1 << (kAttributeBits + 8));

/* A row's bytes in their parts. */
struct RowParts {
  uint32 stamp;
  int attributes;
  const char* bitmap;
  size_t bitmap_bytes; /* 0: no nulls */
  const char* values;
  size_t value_bytes;
};

bool is_plain(const FormData_pg_attribute* attribute, Datum value) {
  if (attribute->attlen != -1) return true;
  const auto* datum =
      static_cast<const struct varlena*>(static_cast<void*>(DatumGetPointer(value)));
  return !VARATT_IS_EXTERNAL(datum) && !VARATT_IS_COMPRESSED(datum);
}

size_t attribute_bytes(int attributes) { return attributes < 1 << kAttributeBits ? 1 : 2; }

[[noreturn]] void raise_damaged(BridgeBytes row) {
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                  errmsg("row of %zu bytes in an rdmacc table makes no sense", row.size)));
}

RowParts parts_of(BridgeBytes row) {
  RowParts parts = {};
  if (row.size <= kStampBytes) raise_damaged(row);
  memcpy(&parts.stamp, row.data, kStampBytes);
  const char* at = row.data + kStampBytes;
  const char* const end = row.data + row.size;
  const auto first = static_cast<unsigned char>(*at++);
  parts.attributes = first & (kMoreAttributes - 1);
  if ((first & kMoreAttributes) != 0) {
    if (at == end) raise_damaged(row);
    parts.attributes |= static_cast<unsigned char>(*at++) << kAttributeBits;
  }
  if ((first & kHasNulls) != 0) {
    parts.bitmap_bytes = static_cast<size_t>(BITMAPLEN(parts.attributes));
  }
  if (parts.attributes > MaxHeapAttributeNumber ||
      parts.bitmap_bytes > static_cast<size_t>(end - at)) {
    raise_damaged(row);
  }
  parts.bitmap = at;
  parts.values = at + parts.bitmap_bytes;
  parts.value_bytes = static_cast<size_t>(end - parts.values);
  return parts;
}

size_t values_place(const RowParts& parts) {
  return MAXALIGN(SizeofHeapTupleHeader + parts.bitmap_bytes);
}

size_t tuple_length(const RowParts& parts) { return values_place(parts) + parts.value_bytes; }

/* Of tuple_length() bytes at `data`, aligned as palloc() does. That there are attributes of
 * variable width may be said of any tuple. */
void fill_tuple(const RowParts& parts, char* data, HeapTuple tuple) {
  const size_t place = values_place(parts);
  tuple->t_len = static_cast<uint32>(place + parts.value_bytes);
  ItemPointerSetInvalid(&tuple->t_self);
  tuple->t_tableOid = InvalidOid;
  tuple->t_data = reinterpret_cast<HeapTupleHeader>(data);
  HeapTupleHeader header = tuple->t_data;
  /* Most rows have no nulls, and so a header of a length that is known here. */
  if (parts.bitmap_bytes == 0) {
    memset(header, 0, MAXALIGN(SizeofHeapTupleHeader));
  } else {
    memset(header, 0, place);
    memcpy(header->t_bits, parts.bitmap, parts.bitmap_bytes);
  }
  ItemPointerSetInvalid(&header->t_ctid);
  HeapTupleHeaderSetNatts(header, parts.attributes);
  header->t_infomask = HEAP_HASVARWIDTH | (parts.bitmap_bytes > 0 ? HEAP_HASNULL : 0);
  header->t_hoff = static_cast<uint8>(place);
  memcpy(data + place, parts.values, parts.value_bytes);
  HeapTupleHeaderSetXmin(header, parts.stamp);
}

/* The row that a tuple's values make: its head is put together right before them, where the tuple
 * has a longer one. */
BridgeBytes row_of(MinimalTuple tuple) {
  const int attributes = HeapTupleHeaderGetNatts(tuple);
  const bool nulls = (tuple->t_infomask & HEAP_HASNULL) != 0;
  const size_t bitmap_bytes = nulls ? static_cast<size_t>(BITMAPLEN(attributes)) : 0;
  char* const begin = reinterpret_cast<char*>(tuple);
  char* at = begin + tuple->t_hoff - MINIMAL_TUPLE_OFFSET;
  const char* const end = begin + tuple->t_len;
  static_assert(SizeofMinimalTupleHeader >= kStampBytes + kAttributeBytesMax);
  at -= bitmap_bytes;
  memmove(at, tuple->t_bits, bitmap_bytes);
  at -= attribute_bytes(attributes);
  const bool more = attribute_bytes(attributes) > 1;
  at[0] = static_cast<char>((attributes & (kMoreAttributes - 1)) | (more ? kMoreAttributes : 0) |
                            (nulls ? kHasNulls : 0));
  if (more) at[1] = static_cast<char>(attributes >> kAttributeBits);
  at -= kStampBytes;
  const uint32 written_by = rdmacc_row_stamp();
  memcpy(at, &written_by, kStampBytes);
  CHECK(at >= begin && at < end);
  return {at, static_cast<size_t>(end - at)};
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
  CHECK((tuple->t_infomask & ~(HEAP_HASNULL | HEAP_HASVARWIDTH)) == 0); /* what decoding makes */
  const BridgeBytes row = row_of(tuple);
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
  size_t end = 0; /* of the values, which begin aligned */
  for (int i = 0; i < columns; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    if (attribute->attlen < 0) return rdmacc::kWholeRow;
    end = att_align_nominal(end, attribute->attalign) + static_cast<size_t>(attribute->attlen);
  }
  return static_cast<uint32>(rdmacc_row_head_bytes(descriptor) +
                             static_cast<size_t>(BITMAPLEN(descriptor->natts)) + end);
}

uint32 rdmacc_row_head_bytes(TupleDesc descriptor) {
  return static_cast<uint32>(kStampBytes + attribute_bytes(descriptor->natts));
}

HeapTuple rdmacc_row_decode(BridgeBytes row) {
  const RowParts parts = parts_of(row);
  auto* tuple = static_cast<HeapTuple>(palloc(HEAPTUPLESIZE + tuple_length(parts)));
  fill_tuple(parts, reinterpret_cast<char*>(tuple) + HEAPTUPLESIZE, tuple);
  return tuple;
}

void rdmacc_row_correct_width_flag(HeapTuple tuple, TupleDesc descriptor) {
  const int count =
      Min(static_cast<int>(HeapTupleHeaderGetNatts(tuple->t_data)), descriptor->natts);
  for (int i = 0; i < count; i++) {
    const bool varies = TupleDescAttr(descriptor, i)->attlen < 0;
    if (varies && !heap_attisnull(tuple, i + 1, descriptor)) return;
  }
  tuple->t_data->t_infomask &= static_cast<uint16>(~HEAP_HASVARWIDTH);
}

void rdmacc_row_decode_into(BridgeBytes row, StringInfo bytes, HeapTuple tuple) {
  CHECK(bytes->data != nullptr && tuple != nullptr);
  const RowParts parts = parts_of(row);
  if (tuple_length(parts) >= static_cast<size_t>(bytes->maxlen)) {
    resetStringInfo(bytes);
    enlargeStringInfo(bytes, static_cast<int>(tuple_length(parts)));
  }
  fill_tuple(parts, bytes->data, tuple);
}
