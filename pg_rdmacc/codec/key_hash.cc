/* PostgreSQL's hash of an 8-byte integer has but 32 bits that count, those of arrays, composites,
 * ranges and multiranges are made of their parts' hashes, and that of a jsonb does not tell how its
 * parts are nested. So these are written out part by part, each as it would be as a key, and the
 * bytes are hashed. */

#include "pg_rdmacc/codec/key_codec.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"
}

namespace {

constexpr uint64 kFirstSeed = 0x7264'6d61'6363'0001ULL;
constexpr uint64 kSecondSeed = 0x7264'6d61'6363'0002ULL;

void append_two(StringInfo out, uint64 first, uint64 second) {
  pq_sendint64(out, first);
  pq_sendint64(out, second);
}

void append_by_function(StringInfo out, Oid type, Oid collation, Datum value) {
  TypeCacheEntry* entry = lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC_FINFO);
  FmgrInfo* hash = &entry->hash_extended_proc_finfo;
  CHECK(OidIsValid(hash->fn_oid)); /* or the type would be no kind of key */
  uint64 halves[2] = {kFirstSeed, kSecondSeed};
  for (uint64& half : halves) {
    half = DatumGetUInt64(FunctionCall2Coll(hash, collation, value, UInt64GetDatum(half)));
  }
  append_two(out, halves[0], halves[1]);
}

void append_part(StringInfo out, Oid type, Oid collation, Datum value, bool is_null) {
  pq_sendbyte(out, is_null ? 1 : 0);
  if (is_null) return;
  const Oid base = getBaseType(type);
  if (OidIsValid(collation) && !get_collation_isdeterministic(collation)) {
    append_by_function(out, base, collation, value);
  } else {
    rdmacc_key_append(out, base, collation, value);
  }
}

void append_array(StringInfo out, Oid collation, Datum value) {
  ArrayType* array = DatumGetArrayTypeP(value);
  const Oid type = ARR_ELEMTYPE(array);
  int16 length = 0;
  bool by_value = false;
  char align = 0;
  get_typlenbyvalalign(type, &length, &by_value, &align);
  Datum* values = nullptr;
  bool* nulls = nullptr;
  int count = 0;
  deconstruct_array(array, type, length, by_value, align, &values, &nulls, &count);
  pq_sendint32(out, static_cast<uint32>(ARR_NDIM(array)));
  for (int i = 0; i < ARR_NDIM(array); i++) {
    pq_sendint32(out, static_cast<uint32>(ARR_DIMS(array)[i]));
    pq_sendint32(out, static_cast<uint32>(ARR_LBOUND(array)[i]));
  }
  for (int i = 0; i < count; i++) append_part(out, type, collation, values[i], nulls[i]);
}

void append_composite(StringInfo out, Datum value) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(value);
  TupleDesc descriptor =
      lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
  HeapTupleData tuple = {};
  tuple.t_len = HeapTupleHeaderGetDatumLength(header);
  tuple.t_data = header;
  const auto columns = static_cast<Size>(descriptor->natts);
  auto* values = static_cast<Datum*>(palloc(columns * sizeof(Datum)));
  auto* nulls = static_cast<bool*>(palloc(columns * sizeof(bool)));
  heap_deform_tuple(&tuple, descriptor, values, nulls);
  for (int i = 0; i < descriptor->natts; i++) {
    const FormData_pg_attribute* column = TupleDescAttr(descriptor, i);
    if (column->attisdropped) continue;
    append_part(out, column->atttypid, column->attcollation, values[i], nulls[i]);
  }
  ReleaseTupleDesc(descriptor);
}

/* An operator class of the range type's own may find other values equal than their type does. */
bool compares_as_its_type(const TypeCacheEntry* range) {
  CHECK(range != nullptr && range->rngelemtype != nullptr);
  const TypeCacheEntry* element =
      lookup_type_cache(range->rngelemtype->type_id, TYPECACHE_CMP_PROC);
  return element->cmp_proc == range->rng_cmp_proc_finfo.fn_oid;
}

void append_bound(StringInfo out, const TypeCacheEntry* range, const RangeBound* bound) {
  pq_sendbyte(out, bound->inclusive ? 1 : 0);
  append_part(out, range->rngelemtype->type_id, range->rng_collation, bound->val, bound->infinite);
}

void append_range(StringInfo out, TypeCacheEntry* entry, const RangeType* value) {
  RangeBound lower;
  RangeBound upper;
  bool empty = false;
  range_deserialize(entry, value, &lower, &upper, &empty);
  pq_sendbyte(out, empty ? 1 : 0);
  if (empty) return;
  append_bound(out, entry, &lower);
  append_bound(out, entry, &upper);
}

void append_multirange(StringInfo out, TypeCacheEntry* entry, const MultirangeType* value) {
  RangeType** ranges = nullptr;
  int32 count = 0;
  multirange_deserialize(entry, value, &count, &ranges);
  CHECK(count >= 0);
  pq_sendint32(out, static_cast<uint32>(count));
  for (int32 i = 0; i < count; i++) append_range(out, entry, ranges[i]);
}

void append_scalar(StringInfo out, const JsonbValue* value) {
  pq_sendbyte(out, static_cast<uint8>(value->type));
  switch (value->type) {
    case jbvNull:
      break;
    case jbvBool:
      pq_sendbyte(out, value->val.boolean ? 1 : 0);
      break;
    case jbvNumeric:
      rdmacc_key_append(out, NUMERICOID, InvalidOid, NumericGetDatum(value->val.numeric));
      break;
    case jbvString:
      pq_sendint32(out, static_cast<uint32>(value->val.string.len));
      appendBinaryStringInfo(out, value->val.string.val, value->val.string.len);
      break;
    default:
      elog(ERROR, "jsonb value of kind %d within a container", static_cast<int>(value->type));
  }
}

/* An object has its keys in one order, and each once. */
void append_jsonb(StringInfo out, Datum value) {
  Jsonb* json = DatumGetJsonbP(value);
  JsonbIterator* iterator = JsonbIteratorInit(&json->root);
  JsonbValue part;
  for (JsonbIteratorToken token = JsonbIteratorNext(&iterator, &part, false); token != WJB_DONE;
       token = JsonbIteratorNext(&iterator, &part, false)) {
    pq_sendbyte(out, static_cast<uint8>(token));
    switch (token) {
      case WJB_KEY:
      case WJB_VALUE:
      case WJB_ELEM:
        append_scalar(out, &part);
        break;
      case WJB_BEGIN_ARRAY: /* a value on its own is an array of one */
        pq_sendbyte(out, part.val.array.rawScalar ? 1 : 0);
        break;
      default:
        break;
    }
  }
}

/* False for a type that is not made of parts, or whose parts may be compared in a way of its own.
 */
bool append_parts(StringInfo out, Oid type, Oid collation, Datum value) {
  if (type == JSONBOID) {
    append_jsonb(out, value);
    return true;
  }
  if (type_is_array(type)) {
    append_array(out, collation, value);
    return true;
  }
  switch (get_typtype(type)) {
    case TYPTYPE_COMPOSITE:
      append_composite(out, value);
      return true;
    case TYPTYPE_RANGE: {
      TypeCacheEntry* range = lookup_type_cache(type, TYPECACHE_RANGE_INFO);
      if (!compares_as_its_type(range)) return false;
      append_range(out, range, DatumGetRangeTypeP(value));
      return true;
    }
    case TYPTYPE_MULTIRANGE: {
      TypeCacheEntry* range = lookup_type_cache(type, TYPECACHE_MULTIRANGE_INFO)->rngtype;
      if (!compares_as_its_type(range)) return false;
      append_multirange(out, range, DatumGetMultirangeTypeP(value));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

void rdmacc_key_append_hash(StringInfo out, Oid type, Oid collation, Datum value) {
  CHECK(out != nullptr);
  StringInfoData parts;
  initStringInfo(&parts);
  if (append_parts(&parts, type, collation, value)) {
    CHECK(parts.len > 0);
    const auto* bytes = reinterpret_cast<const unsigned char*>(parts.data);
    append_two(out, hash_bytes_extended(bytes, parts.len, kFirstSeed),
               hash_bytes_extended(bytes, parts.len, kSecondSeed));
  } else {
    append_by_function(out, type, collation, value);
  }
  pfree(parts.data);
}
