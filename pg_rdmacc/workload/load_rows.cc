/* rdmacc.load_rows(): a query's rows into a table that the transaction has just made. They are kept
 * until the query has ended, on disk where they are many: while no query is open the nodes put rows
 * in place before the commit (pg_rdmacc/row/row_load.h). */
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

PGDLLEXPORT Datum rdmacc_load_rows(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_load_rows);
}

namespace {

constexpr int kBatchRows = 1000;

/* Nothing has to run, or be checked, for each row. */
void check_new(Relation relation) {
  const TupleConstr* constraints = RelationGetDescr(relation)->constr;
  const bool plain = !relation->rd_rel->relhastriggers && !relation->rd_rel->relrowsecurity &&
                     (constraints == nullptr ||
                      (constraints->num_check == 0 && !constraints->has_generated_stored)) &&
                     list_length(RelationGetIndexList(relation)) <= 1;
  if (rdmacc_is_ours(relation) && relation->rd_rel->relkind == RELKIND_RELATION && plain &&
      relation->rd_createSubid == GetCurrentSubTransactionId()) {
    return;
  }
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("\"%s\" is not a plain rdmacc table that this transaction has made",
                         RelationGetRelationName(relation))));
}

/* The query's rows, which must have the table's types. */
Tuplestorestate* run_query(const char* query, TupleDesc wanted) {
  Tuplestorestate* rows = tuplestore_begin_heap(false, false, work_mem);
  DestReceiver* receiver = CreateDestReceiver(DestTuplestore);
  SetTuplestoreDestReceiverParams(receiver, rows, CurrentMemoryContext, /*detoast=*/false, wanted,
                                  "the query's rows are not those of the table");
  SPIExecuteOptions options = {};
  options.dest = receiver;
  SPI_connect();
  const int result = SPI_execute_extended(query, &options);
  if (result != SPI_OK_SELECT) {
    ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("rows come by a SELECT")));
  }
  SPI_finish();
  receiver->rDestroy(receiver);
  return rows;
}

void check_nulls(Relation relation, TupleTableSlot* slot) {
  TupleDesc descriptor = RelationGetDescr(relation);
  slot_getallattrs(slot);
  for (int i = 0; i < descriptor->natts; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    if (!attribute->attnotnull || !slot->tts_isnull[i]) continue;
    ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                    errmsg("null value in column \"%s\" of relation \"%s\" violates not-null "
                           "constraint",
                           NameStr(attribute->attname), RelationGetRelationName(relation))));
  }
}

/* The next rows, as many as a batch has; how many. */
int fill_batch(Relation relation, Tuplestorestate* rows, TupleTableSlot* row,
               TupleTableSlot** batch) {
  int count = 0;
  while (count < kBatchRows && tuplestore_gettupleslot(rows, true, false, row)) {
    check_nulls(relation, row);
    if (batch[count] == nullptr) batch[count] = table_slot_create(relation, nullptr);
    ExecCopySlot(batch[count++], row);
  }
  return count;
}

void insert_rows(Relation relation, Tuplestorestate* rows) {
  auto** batch = static_cast<TupleTableSlot**>(palloc0(sizeof(TupleTableSlot*) * kBatchRows));
  TupleTableSlot* row = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsMinimalTuple);
  MemoryContext of_batch =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc batch", ALLOCSET_DEFAULT_SIZES);
  const CommandId command = GetCurrentCommandId(true);
  BulkInsertState state = GetBulkInsertState();
  for (int count = fill_batch(relation, rows, row, batch); count > 0;
       count = fill_batch(relation, rows, row, batch)) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext previous = MemoryContextSwitchTo(of_batch);
    table_multi_insert(relation, batch, count, command, 0, state);
    MemoryContextSwitchTo(previous);
    MemoryContextReset(of_batch);
  }
  FreeBulkInsertState(state);
  table_finish_bulk_insert(relation, 0);
  for (int i = 0; i < kBatchRows && batch[i] != nullptr; i++) {
    ExecDropSingleTupleTableSlot(batch[i]);
  }
  ExecDropSingleTupleTableSlot(row);
}

}  // namespace

Datum rdmacc_load_rows(PG_FUNCTION_ARGS) {
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("neither the relation nor the query may be null")));
  }
  PreventCommandIfReadOnly("rdmacc.load_rows()");
  Relation relation = table_open(PG_GETARG_OID(0), RowExclusiveLock);
  check_new(relation);
  const AclResult may = pg_class_aclcheck(RelationGetRelid(relation), GetUserId(), ACL_INSERT);
  if (may != ACLCHECK_OK) aclcheck_error(may, OBJECT_TABLE, RelationGetRelationName(relation));
  Tuplestorestate* rows =
      run_query(text_to_cstring(PG_GETARG_TEXT_PP(1)), RelationGetDescr(relation));
  const int64 count = tuplestore_tuple_count(rows);
  insert_rows(relation, rows);
  tuplestore_end(rows);
  table_close(relation, NoLock);
  ereport(DEBUG1, (errmsg_internal(INT64_FORMAT " rows loaded", count)));
  PG_RETURN_VOID();
}
