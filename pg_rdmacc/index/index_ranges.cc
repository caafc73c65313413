#include "pg_rdmacc/index/index_ranges.h"

#include "pg_rdmacc/codec/key_codec.h"

extern "C" {
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
}

namespace {

BridgeBytes bytes_of(const StringInfoData* text) {
  return {text->data, static_cast<size_t>(text->len)};
}

int compare(BridgeBytes one, BridgeBytes other) {
  const int order = memcmp(one.data, other.data, Min(one.size, other.size));
  if (order != 0) return order;
  return one.size < other.size ? -1 : one.size > other.size;
}

int compare_values(const void* one, const void* other) {
  return compare(*static_cast<const BridgeBytes*>(one), *static_cast<const BridgeBytes*>(other));
}

void assign(StringInfo to, const StringInfoData* from) {
  resetStringInfo(to);
  appendBinaryStringInfo(to, from->data, from->len);
}

/* The type of a scan key's value; false when its bytes do not compare with the column's. */
bool value_type(const RdmaccIndexColumn* column, const ScanKeyData* key, Oid* type) {
  const Oid subtype = key->sk_subtype;
  *type = column->type;
  if (subtype == RECORDOID) { /* a row, perhaps with other columns, which comparing it says */
    if ((key->sk_flags & (SK_SEARCHARRAY | SK_ISNULL)) != 0) return false;
    return HeapTupleHeaderGetTypeId(DatumGetHeapTupleHeader(key->sk_argument)) == column->type;
  }
  if (!OidIsValid(subtype) || IsPolymorphicType(subtype)) return true;
  *type = subtype;
  return rdmacc_key_types_match(column->type, subtype);
}

BridgeBytes encode(const RdmaccIndexColumn* column, Oid type, Datum value, bool is_null) {
  StringInfoData bytes;
  initStringInfo(&bytes);
  rdmacc_append_index_column(&bytes, column, type, value, is_null);
  return bytes_of(&bytes);
}

/* ---- Columns that are fixed */

void choose_array(RdmaccColumnChoice* choice, const RdmaccIndexColumn* column, Oid type,
                  Datum value) {
  Datum* elements = nullptr;
  bool* nulls = nullptr;
  const int count = rdmacc_array_elements(value, &elements, &nulls);
  choice->values =
      static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes) * static_cast<Size>(Max(count, 1))));
  choice->count = 0;
  for (int i = 0; i < count; i++) {
    if (nulls[i]) continue;
    choice->values[choice->count++] = encode(column, type, elements[i], false);
  }
  if (choice->count < 2) return;
  qsort(choice->values, static_cast<size_t>(choice->count), sizeof(BridgeBytes), compare_values);
  int kept = 1;
  for (int i = 1; i < choice->count; i++) {
    if (compare(choice->values[i], choice->values[kept - 1]) != 0) {
      choice->values[kept++] = choice->values[i];
    }
  }
  choice->count = kept;
}

void choose_one(RdmaccColumnChoice* choice, BridgeBytes value) {
  choice->count = 1;
  choice->values = static_cast<BridgeBytes*>(palloc(sizeof(BridgeBytes)));
  choice->values[0] = value;
}

/* True when the key fixes the column's value. */
bool choose(RdmaccColumnChoice* choice, const RdmaccIndexColumn* column, const ScanKeyData* key,
            StrategyNumber equality) {
  Oid type = InvalidOid;
  if ((key->sk_flags & SK_SEARCHNULL) != 0) {
    choose_one(choice, encode(column, column->type, 0, true));
    return true;
  }
  if ((key->sk_flags & (SK_SEARCHNOTNULL | SK_ROW_HEADER)) != 0 || key->sk_strategy != equality ||
      !value_type(column, key, &type)) {
    return false;
  }
  if ((key->sk_flags & SK_SEARCHARRAY) != 0) {
    choose_array(choice, column, type, key->sk_argument);
  } else {
    choose_one(choice, encode(column, type, key->sk_argument, false));
  }
  return true;
}

/* The first key that fixes column `number`, or NULL. Others of the column are checked on rows. */
const ScanKeyData* fix_column(RdmaccIndexRanges* ranges, const RdmaccIndex* index,
                              const ScanKeyData* keys, int key_count, int number) {
  const RdmaccIndexColumn* column = &index->columns[number];
  const StrategyNumber equality = index->hash ? HTEqualStrategyNumber : BTEqualStrategyNumber;
  for (int i = 0; i < key_count; i++) {
    if (keys[i].sk_attno != number + 1) continue;
    if (!choose(&ranges->choices[number], column, &keys[i], equality)) continue;
    ranges->choices[number].present = 0;
    const bool is_null = (keys[i].sk_flags & SK_SEARCHNULL) != 0;
    ranges->lossy = ranges->lossy || (!column->exact && !is_null);
    return &keys[i];
  }
  return nullptr;
}

/* ---- Bounds of the column behind them */

/* In the order of the index: a descending column's comparisons are the other way round. */
StrategyNumber physical(StrategyNumber strategy, bool descending) {
  if (!descending) return strategy;
  switch (strategy) {
    case BTLessStrategyNumber:
      return BTGreaterStrategyNumber;
    case BTLessEqualStrategyNumber:
      return BTGreaterEqualStrategyNumber;
    case BTGreaterEqualStrategyNumber:
      return BTLessEqualStrategyNumber;
    case BTGreaterStrategyNumber:
      return BTLessStrategyNumber;
    default:
      return strategy;
  }
}

void raise_low(RdmaccIndexRanges* ranges, const StringInfoData* low) {
  if (compare(bytes_of(low), bytes_of(&ranges->low_tail)) > 0) assign(&ranges->low_tail, low);
}

void lower_high(RdmaccIndexRanges* ranges, const StringInfoData* high) {
  if (!ranges->high_tail_bounded || compare(bytes_of(high), bytes_of(&ranges->high_tail)) < 0) {
    assign(&ranges->high_tail, high);
    ranges->high_tail_bounded = true;
  }
}

/* Whatever a column is compared with, it is not NULL. */
void exclude_nulls(RdmaccIndexRanges* ranges, const RdmaccIndexColumn* column) {
  StringInfoData marker;
  initStringInfo(&marker);
  rdmacc_append_index_column(&marker, column, column->type, 0, true);
  if (column->nulls_first) {
    if (rdmacc_next_prefix(&marker)) raise_low(ranges, &marker);
  } else {
    lower_high(ranges, &marker);
  }
}

/* False when the rows have to be looked at. */
bool bound(RdmaccIndexRanges* ranges, const RdmaccIndexColumn* column, const ScanKeyData* key) {
  exclude_nulls(ranges, column);
  if ((key->sk_flags & SK_SEARCHNOTNULL) != 0) return true;
  const ScanKeyData* first = key;
  bool all = true;
  if ((key->sk_flags & SK_ROW_HEADER) != 0) {
    first = reinterpret_cast<const ScanKeyData*>(DatumGetPointer(key->sk_argument));
    all = false; /* the other columns decide where the first ones are equal */
  }
  Oid type = InvalidOid;
  if (!column->ordered || (first->sk_flags & (SK_SEARCHARRAY | SK_ISNULL)) != 0 ||
      !value_type(column, first, &type)) {
    return false;
  }
  StringInfoData bytes;
  initStringInfo(&bytes);
  rdmacc_append_index_column(&bytes, column, type, first->sk_argument, false);
  switch (physical(first->sk_strategy, column->descending)) {
    case BTLessStrategyNumber:
      if (!all && !rdmacc_next_prefix(&bytes)) return false;
      lower_high(ranges, &bytes);
      return all;
    case BTLessEqualStrategyNumber:
      if (!rdmacc_next_prefix(&bytes)) return false;
      lower_high(ranges, &bytes);
      return all;
    case BTGreaterEqualStrategyNumber:
      raise_low(ranges, &bytes);
      return all;
    case BTGreaterStrategyNumber:
      if (all && !rdmacc_next_prefix(&bytes)) return false;
      raise_low(ranges, &bytes);
      return all;
    default:
      return false;
  }
}

bool never_true(const ScanKeyData* key) {
  return (key->sk_flags & SK_ISNULL) != 0 &&
         (key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)) == 0;
}

/* ---- The range at hand */

void make_range(RdmaccIndexRanges* ranges) {
  resetStringInfo(&ranges->low);
  resetStringInfo(&ranges->high);
  for (int i = 0; i < ranges->choice_count; i++) {
    const RdmaccColumnChoice* choice = &ranges->choices[i];
    CHECK(choice->present >= 0 && choice->present < choice->count);
    const BridgeBytes value = choice->values[choice->present];
    appendBinaryStringInfo(&ranges->low, value.data, static_cast<int>(value.size));
  }
  appendBinaryStringInfo(&ranges->high, ranges->low.data, ranges->low.len);
  appendBinaryStringInfo(&ranges->low, ranges->low_tail.data, ranges->low_tail.len);
  if (ranges->high_tail_bounded) {
    appendBinaryStringInfo(&ranges->high, ranges->high_tail.data, ranges->high_tail.len);
  } else {
    rdmacc_next_prefix(&ranges->high); /* nothing is left of it: the index's end */
  }
}

}  // namespace

void rdmacc_index_ranges_begin(RdmaccIndexRanges* ranges, const RdmaccIndex* index,
                               const ScanKeyData* keys, int key_count) {
  CHECK(index->column_count > 0 && (key_count == 0 || keys != nullptr));
  memset(ranges, 0, sizeof(*ranges));
  initStringInfo(&ranges->low_tail);
  initStringInfo(&ranges->high_tail);
  initStringInfo(&ranges->low);
  initStringInfo(&ranges->high);
  for (int i = 0; i < key_count; i++) ranges->empty = ranges->empty || never_true(&keys[i]);
  if (ranges->empty) return;
  int used = 0;
  int number = 0;
  for (; number < index->column_count; number++) {
    if (fix_column(ranges, index, keys, key_count, number) == nullptr) break;
    used++;
    if (ranges->choices[number].count == 0) ranges->empty = true;
  }
  ranges->choice_count = number;
  for (int i = 0; i < key_count && number < index->column_count; i++) {
    if (keys[i].sk_attno == number + 1 && bound(ranges, &index->columns[number], &keys[i])) used++;
  }
  if (used < key_count) ranges->lossy = true;
  if (ranges->high_tail_bounded &&
      compare(bytes_of(&ranges->low_tail), bytes_of(&ranges->high_tail)) >= 0) {
    ranges->empty = true;
  }
}

bool rdmacc_index_ranges_first(RdmaccIndexRanges* ranges, bool backward) {
  if (ranges->empty) return false;
  for (int i = 0; i < ranges->choice_count; i++) {
    ranges->choices[i].present = backward ? ranges->choices[i].count - 1 : 0;
  }
  make_range(ranges);
  return true;
}

bool rdmacc_index_ranges_next(RdmaccIndexRanges* ranges, bool backward) {
  if (ranges->empty) return false;
  for (int i = ranges->choice_count - 1; i >= 0; i--) {
    RdmaccColumnChoice* choice = &ranges->choices[i];
    choice->present += backward ? -1 : 1;
    if (choice->present >= 0 && choice->present < choice->count) {
      make_range(ranges);
      return true;
    }
    choice->present = backward ? choice->count - 1 : 0;
  }
  return false;
}

BridgeRange rdmacc_index_range(const RdmaccIndexRanges* ranges) {
  return {.low = bytes_of(&ranges->low),
          .high = bytes_of(&ranges->high),
          .low_bounded = true,
          .high_bounded = ranges->high.len > 0};
}
