#include "pg_rdmacc/index/index_entries.h"

#include "pg_rdmacc/bridge/entry_key.h"
#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "port/pg_bswap.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
}

namespace {

bool is_pattern_family(Oid family) {
  return family == TEXT_PATTERN_BTREE_FAM_OID || family == BPCHAR_PATTERN_BTREE_FAM_OID;
}

void describe_column(Relation relation, Relation index, int number, RdmaccIndexColumn* column) {
  CHECK(number >= 0 && number < IndexRelationGetNumberOfKeyAttributes(index));
  const int16 option = index->rd_indoption[number];
  column->attno = index->rd_index->indkey.values[number];
  column->collation = index->rd_indcollation[number];
  column->type = rdmacc_key_column_type(index->rd_opcintype[number],
                                        rdmacc_index_column_type(relation, index, number));
  column->descending = (option & INDOPTION_DESC) != 0;
  column->nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
  column->ordered =
      index->rd_rel->relam == BTREE_AM_OID &&
      rdmacc_type_is_ordered(column->type, column->collation, index->rd_opfamily[number]);
  column->exact = rdmacc_key_kind(column->type) != RDMACC_KEY_HASH;
}

void check_columns_size(const StringInfoData* columns, int from, Relation relation,
                        const RdmaccIndex* index) {
  const int size = columns->len - from;
  if (size <= RDMACC_INDEX_COLUMNS_BYTES_MAX) return;
  const char* name = get_rel_name(index->oid);
  ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                  errmsg("index row size %d exceeds maximum %d for index \"%s\"", size,
                         RDMACC_INDEX_COLUMNS_BYTES_MAX, name != nullptr ? name : ""),
                  errtable(relation)));
}

}  // namespace

bool rdmacc_type_is_ordered(Oid type, Oid collation, Oid family) {
  if (IsPolymorphicType(type) || type == RECORDOID) return false;
  switch (rdmacc_key_kind(type)) {
    case RDMACC_KEY_NONE:
    case RDMACC_KEY_ENUM: /* the order of enum values is in the catalog */
    case RDMACC_KEY_HASH:
      return false;
    case RDMACC_KEY_BYTES:
    case RDMACC_KEY_BPCHAR:
      return is_pattern_family(family) || !OidIsValid(collation) || lc_collate_is_c(collation);
    default:
      return true;
  }
}

void rdmacc_describe_index(Relation relation, Relation index, RdmaccIndex* out) {
  memset(out, 0, sizeof(*out));
  out->oid = RelationGetRelid(index);
  out->relfilenode = index->rd_node.relNode;
  /* Rows are keyed by the primary key: they cannot have it twice. */
  out->unique = index->rd_index->indisunique && !index->rd_index->indisprimary;
  out->nulls_not_distinct = index->rd_index->indnullsnotdistinct;
  out->valid = index->rd_index->indisvalid;
  out->deferrable = !index->rd_index->indimmediate;
  out->hash = index->rd_rel->relam == HASH_AM_OID;
  out->computed =
      RelationGetIndexExpressions(index) != NIL || RelationGetIndexPredicate(index) != NIL;
  out->column_count = IndexRelationGetNumberOfKeyAttributes(index);
  for (int i = 0; i < out->column_count; i++) {
    describe_column(relation, index, i, &out->columns[i]);
  }
}

void rdmacc_append_index_column(StringInfo out, const RdmaccIndexColumn* column, Oid type,
                                Datum value, bool is_null) {
  if (is_null) {
    appendStringInfoCharMacro(out, static_cast<char>(column->nulls_first ? RDMACC_INDEX_NULL_FIRST
                                                                         : RDMACC_INDEX_NULL_LAST));
    return;
  }
  appendStringInfoCharMacro(out, static_cast<char>(RDMACC_INDEX_VALUE));
  const int from = out->len;
  rdmacc_key_append(out, type, column->collation, value);
  if (!column->descending) return;
  for (int i = from; i < out->len; i++) out->data[i] = static_cast<char>(~out->data[i]);
}

bool rdmacc_append_index_columns(StringInfo out, Relation relation, const RdmaccIndex* index,
                                 const Datum* values, const bool* nulls) {
  CHECK(index->column_count > 0 && index->column_count <= INDEX_MAX_KEYS);
  bool has_null = false;
  const int from = out->len;
  for (int i = 0; i < index->column_count; i++) {
    const RdmaccIndexColumn* column = &index->columns[i];
    rdmacc_append_index_column(out, column, column->type, values[i], nulls[i]);
    has_null = has_null || nulls[i];
  }
  check_columns_size(out, from, relation, index);
  return has_null;
}

BridgeBytes rdmacc_index_entry(const StringInfoData* columns, BridgeBytes key) {
  CHECK(columns->len > 0 && key.size > 0 && key.size <= RDMACC_KEY_BYTES_MAX);
  const auto columns_size = static_cast<size_t>(columns->len);
  const uint16 key_size = pg_hton16(static_cast<uint16>(key.size));
  static_assert(sizeof(key_size) == RDMACC_ENTRY_LENGTH_BYTES);
  const size_t size = columns_size + key.size + sizeof(key_size);
  auto* entry = static_cast<char*>(palloc(size));
  memcpy(entry, columns->data, columns_size);
  memcpy(entry + columns_size, key.data, key.size);
  memcpy(entry + columns_size + key.size, &key_size, sizeof(key_size));
  return {entry, size};
}

BridgeBytes rdmacc_entry_key(BridgeBytes entry) {
  BridgeBytes key = {};
  if (rdmacc_find_entry_key(entry, &key)) return key;
  ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
                  errmsg("index entry of %zu bytes names no row", entry.size)));
}

bool rdmacc_next_prefix(StringInfo bytes) {
  while (bytes->len > 0) {
    auto* last = reinterpret_cast<unsigned char*>(&bytes->data[bytes->len - 1]);
    if (*last != 0xff) {
      ++*last;
      return true;
    }
    bytes->len--;
  }
  return false;
}

BridgeRange rdmacc_prefix_range(BridgeBytes prefix, StringInfo high) {
  CHECK(prefix.size > 0); /* of no prefix there is no next one */
  resetStringInfo(high);
  appendBinaryStringInfo(high, prefix.data, static_cast<int>(prefix.size));
  const bool bounded = rdmacc_next_prefix(high);
  return {.low = prefix,
          .high = {high->data, static_cast<size_t>(high->len)},
          .low_bounded = true,
          .high_bounded = bounded};
}
