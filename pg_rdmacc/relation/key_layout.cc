#include "pg_rdmacc/relation/key_layout.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/relation/table_options.h"

extern "C" {
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}

namespace {

/* Hidden row ids: 64 random bits of this backend, then a counter that starts at the time of day.
 * No other backend, now or after a restart, has both. */
uint64 hidden_prefix;
uint64 hidden_counter;

void append_hidden_key(StringInfo key) {
  if (hidden_counter == 0) {
    if (!pg_strong_random(&hidden_prefix, sizeof(hidden_prefix))) {
      ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not get random bytes")));
    }
    hidden_counter = static_cast<uint64>(GetCurrentTimestamp());
  }
  hidden_counter++;
  appendBinaryStringInfo(key, reinterpret_cast<const char*>(&hidden_prefix), sizeof(hidden_prefix));
  appendBinaryStringInfo(key, reinterpret_cast<const char*>(&hidden_counter),
                         sizeof(hidden_counter));
}

uint32 layout_number(const RdmaccKeyLayout* layout) {
  uint32 number = 0;
  CHECK(layout->column_count > 0 && layout->column_count <= INDEX_MAX_KEYS);
  for (int i = 0; i < layout->column_count; i++) {
    const RdmaccKeyColumn* column = &layout->columns[i];
    const RdmaccKeyKind kind = rdmacc_key_kind(column->type);
    const uint32 parts[] = {static_cast<uint32>(column->attno), static_cast<uint32>(kind),
                            kind == RDMACC_KEY_HASH ? column->type : 0};
    number = hash_combine(number,
                          hash_bytes(reinterpret_cast<const unsigned char*>(parts), sizeof(parts)));
  }
  if (layout->distribution_columns > 0) {
    number = hash_combine(number, static_cast<uint32>(layout->distribution_columns));
  }
  return number == 0 ? 1 : number;
}

}  // namespace

Oid rdmacc_key_column_type(Oid operator_class_type, Oid attribute_type) {
  return IsPolymorphicType(operator_class_type) || operator_class_type == RECORDOID
             ? getBaseType(attribute_type)
             : operator_class_type;
}

Oid rdmacc_index_column_type(Relation relation, Relation index, int number) {
  CHECK(number >= 0 && number < IndexRelationGetNumberOfAttributes(index));
  /* ALTER COLUMN TYPE changes the table's columns while rows still have the keys of the index as it
   * was. */
  if (index->rd_rel->relam == BTREE_AM_OID) {
    return TupleDescAttr(RelationGetDescr(index), number)->atttypid;
  }
  /* PostgreSQL says of a hash index, which has one column, that it holds hashes. */
  CHECK(number == 0);
  const AttrNumber attno = index->rd_index->indkey.values[0];
  if (attno != 0) return TupleDescAttr(RelationGetDescr(relation), attno - 1)->atttypid;
  return exprType(static_cast<const Node*>(linitial(RelationGetIndexExpressions(index))));
}

void rdmacc_index_layout(Relation relation, Relation index, RdmaccKeyLayout* layout) {
  layout->index = RelationGetRelid(index);
  layout->column_count = IndexRelationGetNumberOfKeyAttributes(index);
  for (int i = 0; i < layout->column_count; i++) {
    RdmaccKeyColumn* column = &layout->columns[i];
    column->attno = index->rd_index->indkey.values[i];
    column->collation = index->rd_indcollation[i];
    column->type = rdmacc_key_column_type(index->rd_opcintype[i],
                                          rdmacc_index_column_type(relation, index, i));
  }
  RdmaccTableOptions options;
  rdmacc_table_options(relation, &options);
  layout->distribution_columns = Min(options.partition_by, layout->column_count);
  layout->number = layout_number(layout);
}

void rdmacc_catalog_layout(Relation relation, RdmaccKeyLayout* layout) {
  memset(layout, 0, sizeof(*layout));
  if (!relation->rd_rel->relhasindex) return;
  list_free(RelationGetIndexList(relation)); /* makes rd_pkindex valid */
  if (!OidIsValid(relation->rd_pkindex)) return;
  Relation index = RelationIdGetRelation(relation->rd_pkindex);
  if (!RelationIsValid(index)) {
    elog(ERROR, "could not open the primary key of \"%s\"", RelationGetRelationName(relation));
  }
  rdmacc_index_layout(relation, index, layout);
  RelationClose(index);
}

void rdmacc_append_key_column(const RdmaccKeyLayout* layout, int column, Oid type, Datum value,
                              StringInfo key) {
  CHECK(column >= 0 && column < layout->column_count);
  CHECK(column > 0 || key->len == 0); /* the length of the distribution key is at the beginning */
  const bool distributed = layout->distribution_columns > 0;
  if (distributed && column == 0) appendStringInfoSpaces(key, rdmacc::kDistributionLengthBytes);
  rdmacc_key_append(key, type, layout->columns[column].collation, value);
  if (!distributed || column + 1 != layout->distribution_columns) return;
  const int length = key->len - static_cast<int>(rdmacc::kDistributionLengthBytes);
  key->data[0] = static_cast<char>(length);
  key->data[1] = static_cast<char>(length >> 8);
}

void rdmacc_table_key(const RdmaccKeyLayout* layout, TupleTableSlot* slot, StringInfo key) {
  CHECK(key->len == 0 && !TTS_EMPTY(slot));
  if (layout->number == 0) {
    append_hidden_key(key);
    return;
  }
  for (int i = 0; i < layout->column_count; i++) {
    const RdmaccKeyColumn* column = &layout->columns[i];
    bool is_null = false;
    const Datum value = slot_getattr(slot, column->attno, &is_null);
    if (is_null) {
      ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                      errmsg("null value in primary key column number %d", column->attno)));
    }
    rdmacc_append_key_column(layout, i, column->type, value, key);
  }
  rdmacc_key_check_size(key);
}
