#include "pg_rdmacc/relation/record_size.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/codec/row_codec.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace {

constexpr uint32 kRecordBytesMin = 32;
constexpr int32 kHiddenKeyBytes = 16;
constexpr int32 kHashedKeyBytes = 16;
constexpr int32 kLongHeaderBytes = VARHDRSZ, kShortHeaderBytes = VARHDRSZ_SHORT;
constexpr int32 kShortVarlenaMax = VARATT_SHORT_MAX - kShortHeaderBytes;
/* Of texts that may be longer: all of a short one's characters, and half of a longer one's rest. */
constexpr int32 kTextBytes = 32;
constexpr int32 kNumericBytes = 10; /* a dozen digits */
/* A number's sign and exponent, and its end; a digit a byte where the value has four in two. */
constexpr int32 kNumericKeyBytes = 18;
constexpr int32 kTextEndBytes = 2;

/* Bytes of a value without its header. What has a fixed width is exact, all else a guess: a
 * character is a byte, as in most texts. */
int32 typical_width(Oid type, int32 typmod) {
  const Oid base = getBaseTypeAndTypmod(type, &typmod);
  const int32 characters = typmod - kLongHeaderBytes; /* of character types that have a limit */
  switch (base) {
    case BPCHAROID:
      return characters > 0 ? characters : kTextBytes;
    case VARCHAROID:
      if (characters <= 0) return kTextBytes;
      return Min(characters, kTextBytes) + Max(characters - kTextBytes, 0) / 2;
    case NUMERICOID:
      return kNumericBytes;
    default:
      return get_typavgwidth(base, typmod);
  }
}

/* Behind `end` bytes of values. `least`: of a row whose values of no fixed width are empty. */
int32 end_of_value(int32 end, const FormData_pg_attribute* attribute, bool least) {
  const auto align = [&](int32 bytes) {
    return static_cast<int32>(att_align_nominal(bytes, attribute->attalign));
  };
  if (attribute->attlen > 0) return align(end) + attribute->attlen;
  const int32 width = least ? 0 : typical_width(attribute->atttypid, attribute->atttypmod);
  if (attribute->attlen == -2) return end + width + 1;
  const bool is_short = width <= kShortVarlenaMax && attribute->attstorage != TYPSTORAGE_PLAIN;
  return is_short ? end + kShortHeaderBytes + width : align(end) + kLongHeaderBytes + width;
}

int32 key_column_bytes(const RdmaccKeyColumn* column, const FormData_pg_attribute* attribute) {
  switch (rdmacc_key_kind(column->type)) {
    case RDMACC_KEY_BOOL:
    case RDMACC_KEY_CHAR:
      return 1;
    case RDMACC_KEY_OID:
    case RDMACC_KEY_DATE:
    case RDMACC_KEY_ENUM:
      return sizeof(uint32);
    case RDMACC_KEY_INT:
    case RDMACC_KEY_FLOAT:
    case RDMACC_KEY_INT64_TIME:
    case RDMACC_KEY_UINT64:
      return sizeof(uint64);
    case RDMACC_KEY_TIMETZ:
      return sizeof(uint64) + sizeof(uint32);
    case RDMACC_KEY_INTERVAL:
    case RDMACC_KEY_UUID:
      return 2 * sizeof(uint64);
    case RDMACC_KEY_NUMERIC:
      return kNumericKeyBytes;
    case RDMACC_KEY_BYTES:
      if (column->type == NAMEOID) return kTextBytes + kTextEndBytes;
      [[fallthrough]];
    case RDMACC_KEY_BPCHAR:
      return typical_width(attribute->atttypid, attribute->atttypmod) + kTextEndBytes;
    case RDMACC_KEY_HASH:
    case RDMACC_KEY_NONE:
      break;
  }
  return kHashedKeyBytes;
}

int32 key_bytes(TupleDesc descriptor, const RdmaccKeyLayout* layout) {
  if (layout->number == 0) return kHiddenKeyBytes;
  int32 bytes =
      layout->distribution_columns > 0 ? static_cast<int32>(rdmacc::kDistributionLengthBytes) : 0;
  for (int i = 0; i < layout->column_count; i++) {
    const RdmaccKeyColumn* column = &layout->columns[i];
    CHECK(column->attno > 0 && column->attno <= descriptor->natts);
    bytes += key_column_bytes(column, TupleDescAttr(descriptor, column->attno - 1));
  }
  return bytes;
}

/* A row with nulls has a bitmap, and lacks what it stands for; one that lacks dropped columns has
 * nothing but the bitmap of it. */
int32 value_bytes(TupleDesc descriptor, bool least) {
  int32 end = 0;
  bool dropped = false;
  for (int i = 0; i < descriptor->natts; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    dropped = dropped || attribute->attisdropped;
    if (!attribute->attisdropped) end = end_of_value(end, attribute, least);
    /* More than a slot may hold is enough to know, and a sum of all may be more than an int32. */
    if (end > static_cast<int32>(rdmacc::kRecordInlineMax)) return end;
  }
  return end + (dropped ? BITMAPLEN(descriptor->natts) : 0);
}

uint32 record_bytes(TupleDesc descriptor, const RdmaccKeyLayout* layout, bool least) {
  return static_cast<uint32>(rdmacc::kKeyLengthBytes) +
         static_cast<uint32>(key_bytes(descriptor, layout)) + rdmacc_row_head_bytes(descriptor) +
         static_cast<uint32>(value_bytes(descriptor, least));
}

}  // namespace

uint32 rdmacc_record_size(Relation relation, const RdmaccKeyLayout* layout, uint32 history) {
  TupleDesc descriptor = RelationGetDescr(relation);
  /* Where all rows are longer than a slot may be, it need not hold more than the block's address.
   */
  const bool fits = record_bytes(descriptor, layout, true) <= rdmacc::kRecordInlineMax;
  const uint32 bytes = fits ? record_bytes(descriptor, layout, false) : kRecordBytesMin;
  return rdmacc::record_size_of_slot(Max(bytes, kRecordBytesMin), history);
}
