#include "pg_rdmacc/index/index_only.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace {

/* The type that a column's entries are of; InvalidOid for an expression, which no scan returns. */
Oid column_type(const IndexOptInfo* index, int column) {
  if (index->indexkeys[column] == 0) return InvalidOid;
  return rdmacc_key_column_type(index->opcintype[column],
                                get_atttype(index->indexoid, static_cast<AttrNumber>(column + 1)));
}

}  // namespace

void rdmacc_describe_index_only(IndexOptInfo* index) {
  bool whole = index->relam == BTREE_AM_OID;
  for (int i = 0; i < index->ncolumns; i++) {
    whole = whole && i < index->nkeycolumns;
    if (whole) {
      const Oid type = column_type(index, i);
      whole = OidIsValid(type) && rdmacc_key_is_decodable(type);
    }
    index->canreturn[i] = whole;
  }
}

void rdmacc_index_only_begin(RdmaccIndexOnly* state, Relation relation, Relation index) {
  CHECK(state->descriptor == nullptr && state->memory == nullptr);
  const int count = IndexRelationGetNumberOfAttributes(index);
  state->descriptor = CreateTemplateTupleDesc(count);
  for (int i = 0; i < count; i++) {
    const AttrNumber attno = index->rd_index->indkey.values[i];
    const auto number = static_cast<AttrNumber>(i + 1);
    if (attno != 0) {
      TupleDescCopyEntry(state->descriptor, number, RelationGetDescr(relation), attno);
    } else {
      TupleDescCopyEntry(state->descriptor, number, RelationGetDescr(index), number);
    }
  }
  state->memory =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc index-only scan", ALLOCSET_SMALL_SIZES);
}

void rdmacc_index_only_end(RdmaccIndexOnly* state) {
  if (state->memory != nullptr) MemoryContextDelete(state->memory);
}

HeapTuple rdmacc_index_only_tuple(RdmaccIndexOnly* state, const RdmaccIndex* index,
                                  BridgeBytes entry) {
  CHECK(index->column_count <= state->descriptor->natts && state->memory != nullptr);
  Datum values[INDEX_MAX_KEYS] = {};
  bool nulls[INDEX_MAX_KEYS];
  memset(nulls, true, sizeof(nulls));
  MemoryContextReset(state->memory);
  const MemoryContext previous = MemoryContextSwitchTo(state->memory);
  for (int i = 0; i < index->column_count && entry.size > 0; i++) {
    const RdmaccIndexColumn* column = &index->columns[i];
    if (column->attno == 0 || !rdmacc_key_is_decodable(column->type)) break;
    const auto marker = static_cast<unsigned char>(*entry.data);
    entry.data++;
    entry.size--;
    nulls[i] = marker != RDMACC_INDEX_VALUE;
    if (!nulls[i]) values[i] = rdmacc_key_decode(column->type, column->descending, &entry);
  }
  HeapTuple tuple = heap_form_tuple(state->descriptor, values, nulls);
  MemoryContextSwitchTo(previous);
  return tuple;
}
