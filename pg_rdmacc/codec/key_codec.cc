#include "pg_rdmacc/codec/key_codec.h"

#include <math.h>

extern "C" {
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"
}

namespace {

constexpr uint64 kSignBit = 1ULL << 63;

void append_uint64(StringInfo out, uint64 value) {
  const uint64 big_endian = pg_hton64(value);
  appendBinaryStringInfo(out, reinterpret_cast<const char*>(&big_endian), sizeof(big_endian));
}

void append_uint32(StringInfo out, uint32 value) {
  const uint32 big_endian = pg_hton32(value);
  appendBinaryStringInfo(out, reinterpret_cast<const char*>(&big_endian), sizeof(big_endian));
}

void append_byte(StringInfo out, unsigned value) {
  appendStringInfoCharMacro(out, static_cast<char>(value));
}

void append_int64(StringInfo out, int64 value) {
  append_uint64(out, static_cast<uint64>(value) ^ kSignBit);
}

/* 0x00 becomes 0x00 0xff and the end 0x00 0x01, so that no key is the beginning of another. */
void append_escaped(StringInfo out, const char* bytes, size_t size) {
  CHECK(bytes != nullptr);
  const char* end = bytes + size;
  while (bytes < end) {
    const auto* zero = static_cast<const char*>(memchr(bytes, 0, static_cast<size_t>(end - bytes)));
    const char* stop = zero != nullptr ? zero : end;
    appendBinaryStringInfo(out, bytes, static_cast<int>(stop - bytes));
    if (zero == nullptr) break;
    append_byte(out, 0x00);
    append_byte(out, 0xff);
    bytes = zero + 1;
  }
  append_byte(out, 0x00);
  append_byte(out, 0x01);
}

void append_float(StringInfo out, float8 value) {
  if (isnan(value)) {
    append_uint64(out, PG_UINT64_MAX); /* all NaNs are equal and larger than all else */
    return;
  }
  if (value == 0) value = 0; /* -0 = 0 */
  uint64 bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  append_uint64(out, (bits & kSignBit) != 0 ? ~bits : bits | kSignBit);
}

/* Classes in the order of PostgreSQL's numeric. */
enum NumericClass : unsigned char {
  kMinusInfinity = 1,
  kNegative,
  kZero,
  kPositive,
  kInfinity,
  kNotANumber
};

/* A finite number that is not zero, as 0.DDD x 10^exponent with neither end of DDD being zero. */
void append_decimal(StringInfo out, const char* text) {
  const bool negative = *text == '-';
  if (negative) text++;
  const char* point = strchr(text, '.');
  const size_t whole = point != nullptr ? static_cast<size_t>(point - text) : strlen(text);
  int32 exponent = 0;
  size_t leading = 0; /* characters before the first digit that counts */
  if (text[0] != '0') {
    exponent = static_cast<int32>(whole);
  } else {
    leading = whole + 1;
    while (text[leading] == '0') leading++;
    exponent = -static_cast<int32>(leading - whole - 1);
  }
  size_t end = strlen(text);
  while (end > leading && (text[end - 1] == '0' || text[end - 1] == '.')) end--;
  CHECK(leading < end); /* zero, infinities and NaN have classes of their own */
  const unsigned flip = negative ? 0xff : 0x00;
  append_byte(out, negative ? kNegative : kPositive);
  const uint32 ordered = static_cast<uint32>(exponent) ^ 0x8000'0000U;
  append_uint32(out, negative ? ~ordered : ordered);
  for (size_t i = leading; i < end; i++) {
    if (text[i] != '.') append_byte(out, static_cast<unsigned char>(text[i]) ^ flip);
  }
  append_byte(out, flip);
}

void append_numeric(StringInfo out, Datum value) {
  char* text = numeric_normalize(DatumGetNumeric(value));
  if (strcmp(text, "NaN") == 0) {
    append_byte(out, kNotANumber);
  } else if (strcmp(text, "Infinity") == 0) {
    append_byte(out, kInfinity);
  } else if (strcmp(text, "-Infinity") == 0) {
    append_byte(out, kMinusInfinity);
  } else if (strcmp(text, "0") == 0) {
    append_byte(out, kZero);
  } else {
    append_decimal(out, text);
  }
  pfree(text);
}

/* As interval_cmp_value() sees it: '1 month' = '30 days'. */
void append_interval(StringInfo out, const Interval* value) {
  const int64 days = static_cast<int64>(value->month) * INT64CONST(30) + value->day;
  const __int128 span = static_cast<__int128>(days) * USECS_PER_DAY + value->time;
  const auto bits = static_cast<unsigned __int128>(span);
  append_uint64(out, static_cast<uint64>(bits >> 64) ^ kSignBit);
  append_uint64(out, static_cast<uint64>(bits));
}

void append_timetz(StringInfo out, const TimeTzADT* value) {
  append_int64(out, value->time + value->zone * USECS_PER_SEC);
  append_uint32(out, static_cast<uint32>(value->zone) ^ 0x8000'0000U);
}

void append_text(StringInfo out, Datum value, bool blank_padded) {
  struct varlena* text = PG_DETOAST_DATUM_PACKED(value);
  const char* bytes = VARDATA_ANY(text);
  auto size = static_cast<size_t>(VARSIZE_ANY_EXHDR(text));
  while (blank_padded && size > 0 && bytes[size - 1] == ' ') size--;
  append_escaped(out, bytes, size);
}

int64 int_value(Oid type, Datum value) {
  switch (type) {
    case INT2OID:
      return DatumGetInt16(value);
    case INT4OID:
      return DatumGetInt32(value);
    default:
      return DatumGetInt64(value);
  }
}

}  // namespace

RdmaccKeyKind rdmacc_key_kind(Oid type) {
  switch (type) {
    case BOOLOID:
      return RDMACC_KEY_BOOL;
    case INT2OID:
    case INT4OID:
    case INT8OID:
      return RDMACC_KEY_INT;
    case OIDOID:
      return RDMACC_KEY_OID;
    case FLOAT4OID:
    case FLOAT8OID:
      return RDMACC_KEY_FLOAT;
    case NUMERICOID:
      return RDMACC_KEY_NUMERIC;
    case DATEOID:
      return RDMACC_KEY_DATE;
    case TIMEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
      return RDMACC_KEY_INT64_TIME;
    case TIMETZOID:
      return RDMACC_KEY_TIMETZ;
    case INTERVALOID:
      return RDMACC_KEY_INTERVAL;
    case UUIDOID:
      return RDMACC_KEY_UUID;
    case XID8OID:
    case LSNOID:
      return RDMACC_KEY_UINT64;
    case BYTEAOID:
    case TEXTOID:
    case VARCHAROID:
    case NAMEOID:
      return RDMACC_KEY_BYTES;
    case BPCHAROID:
      return RDMACC_KEY_BPCHAR;
    case CHAROID:
      return RDMACC_KEY_CHAR;
    default:
      break;
  }
  if (type_is_enum(type)) return RDMACC_KEY_ENUM;
  const TypeCacheEntry* entry = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC_FINFO);
  return OidIsValid(entry->hash_extended_proc_finfo.fn_oid) ? RDMACC_KEY_HASH : RDMACC_KEY_NONE;
}

bool rdmacc_key_types_match(Oid column_type, Oid type) {
  if (column_type == type) return true;
  const RdmaccKeyKind kind = rdmacc_key_kind(column_type);
  switch (kind) {
    case RDMACC_KEY_INT:
    case RDMACC_KEY_FLOAT:
      return rdmacc_key_kind(type) == kind;
    case RDMACC_KEY_BYTES:
      /* Not bytea: its equality is another operator. */
      return column_type != BYTEAOID && type != BYTEAOID && rdmacc_key_kind(type) == kind;
    default:
      return false;
  }
}

void rdmacc_key_append(StringInfo out, Oid type, Oid collation, Datum value) {
  CHECK(out != nullptr && out->data != nullptr);
  const int begin = out->len;
  switch (rdmacc_key_kind(type)) {
    case RDMACC_KEY_BOOL:
      append_byte(out, DatumGetBool(value) ? 1 : 0);
      break;
    case RDMACC_KEY_INT:
      append_int64(out, int_value(type, value));
      break;
    case RDMACC_KEY_OID:
    case RDMACC_KEY_ENUM:
      append_uint32(out, DatumGetObjectId(value));
      break;
    case RDMACC_KEY_FLOAT:
      append_float(out, type == FLOAT4OID ? static_cast<float8>(DatumGetFloat4(value))
                                          : DatumGetFloat8(value));
      break;
    case RDMACC_KEY_NUMERIC:
      append_numeric(out, value);
      break;
    case RDMACC_KEY_DATE:
      append_uint32(out, static_cast<uint32>(DatumGetDateADT(value)) ^ 0x8000'0000U);
      break;
    case RDMACC_KEY_INT64_TIME:
      append_int64(out, DatumGetInt64(value));
      break;
    case RDMACC_KEY_TIMETZ:
      append_timetz(out, DatumGetTimeTzADTP(value));
      break;
    case RDMACC_KEY_INTERVAL:
      append_interval(out, DatumGetIntervalP(value));
      break;
    case RDMACC_KEY_UUID:
      appendBinaryStringInfo(out, reinterpret_cast<const char*>(DatumGetUUIDP(value)->data),
                             UUID_LEN);
      break;
    case RDMACC_KEY_BYTES:
      if (type == NAMEOID) {
        const char* name = NameStr(*DatumGetName(value));
        append_escaped(out, name, strnlen(name, NAMEDATALEN));
      } else {
        append_text(out, value, false);
      }
      break;
    case RDMACC_KEY_BPCHAR:
      append_text(out, value, true);
      break;
    case RDMACC_KEY_CHAR:
      append_byte(out, static_cast<unsigned char>(DatumGetChar(value)));
      break;
    case RDMACC_KEY_UINT64:
      append_uint64(out, DatumGetUInt64(value));
      break;
    case RDMACC_KEY_HASH:
      rdmacc_key_append_hash(out, type, collation, value);
      break;
    case RDMACC_KEY_NONE:
      elog(ERROR, "type %u cannot be part of an rdmacc key", type);
  }
  CHECK(out->len > begin); /* no value is without bytes */
}

int rdmacc_array_elements(Datum array, Datum** elements, bool** nulls) {
  CHECK(elements != nullptr && nulls != nullptr);
  ArrayType* values = DatumGetArrayTypeP(array);
  int16 length = 0;
  bool by_value = false;
  char alignment = 0;
  int count = 0;
  get_typlenbyvalalign(ARR_ELEMTYPE(values), &length, &by_value, &alignment);
  deconstruct_array(values, ARR_ELEMTYPE(values), length, by_value, alignment, elements, nulls,
                    &count);
  return count;
}

void rdmacc_key_check_size(const StringInfoData* key) {
  CHECK(key->len > 0); /* no row has the empty key */
  if (key->len <= RDMACC_KEY_BYTES_MAX) return;
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("primary key of %d bytes exceeds the limit of %d bytes", key->len,
                         RDMACC_KEY_BYTES_MAX)));
}
