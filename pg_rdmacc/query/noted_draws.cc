#include "pg_rdmacc/query/noted_draws.h"

#include "pg_rdmacc/query/client_statements.h"
#include "pg_rdmacc/query/replay.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "optimizer/planner.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

PGDLLEXPORT Datum rdmacc_noted_nextval(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_noted_currval(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_noted_lastval(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_noted_identity(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_noted_uuid(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_noted_random(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_noted_clock(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_noted_nextval);
PG_FUNCTION_INFO_V1(rdmacc_noted_currval);
PG_FUNCTION_INFO_V1(rdmacc_noted_lastval);
PG_FUNCTION_INFO_V1(rdmacc_noted_identity);
PG_FUNCTION_INFO_V1(rdmacc_noted_uuid);
PG_FUNCTION_INFO_V1(rdmacc_noted_random);
PG_FUNCTION_INFO_V1(rdmacc_noted_clock);
}

namespace {

RdmaccSent* drawing;
planner_hook_type previous_planner;

/* ---- Notes */

/* A sequence that the block has restarted has another file in each attempt, and gives its numbers
 * again. */
Oid file_of(Oid sequence) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(sequence));
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const Oid file = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relfilenode;
  ReleaseSysCache(tuple);
  return file;
}

/* The next note, if it is of the same function and object. */
const RdmaccDraw* noted(Oid function, Oid object, Oid file) {
  if (drawing == nullptr || drawing->draws_given >= list_length(drawing->draws)) return nullptr;
  const auto* draw = static_cast<const RdmaccDraw*>(list_nth(drawing->draws, drawing->draws_given));
  if (draw->function != function || draw->object != object || draw->file != file) return nullptr;
  drawing->draws_given++;
  return draw;
}

template <typename Value, typename Draw>
Value drawn(Oid function, Oid object, Draw draw) {
  static_assert(sizeof(Value) <= sizeof(RdmaccDraw::bytes));
  CHECK(OidIsValid(function));
  Value value;
  const Oid file = drawing != nullptr && OidIsValid(object) ? file_of(object) : InvalidOid;
  const RdmaccDraw* before = noted(function, object, file);
  if (before != nullptr) {
    memcpy(&value, before->bytes, sizeof(value));
    return value;
  }
  value = draw();
  if (drawing != nullptr) {
    RdmaccDraw note = {.function = function, .object = object, .file = file, .bytes = {}};
    memcpy(note.bytes, &value, sizeof(value));
    rdmacc_journal_note_draw(drawing, &note);
    drawing->draws_given = list_length(drawing->draws);
  }
  return value;
}

/* As for an INSERT into the table whose column it is: what an INSERT could not draw is not drawn in
 * this way either. */
bool may_insert(Oid sequence) {
  Oid table = InvalidOid;
  int32 column = 0;
  if (!sequenceIsOwned(sequence, DEPENDENCY_INTERNAL, &table, &column)) return false;
  return pg_class_aclcheck(table, GetUserId(), ACL_INSERT) == ACLCHECK_OK ||
         pg_attribute_aclcheck_all(table, GetUserId(), ACL_INSERT, ACLMASK_ANY) == ACLCHECK_OK;
}

/* ---- Plans */

/* The extension's function in place of this one; NULL for functions that stay. */
const char* replacement_of(Oid function) {
  switch (function) {
    case F_NEXTVAL:
      return "noted_nextval";
    case F_CURRVAL:
      return "noted_currval";
    case F_LASTVAL:
      return "noted_lastval";
    case F_GEN_RANDOM_UUID:
      return "noted_uuid";
    case F_RANDOM:
      return "noted_random";
    case F_CLOCK_TIMESTAMP:
      return "noted_clock";
    default:
      return nullptr;
  }
}

/* As PostgreSQL's headers declare them for C. */
bool (*walker(void))();
Node* (*mutator(void))();

bool draws(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, NextValueExpr)) return true;
  if (IsA(node, FuncExpr) && replacement_of(reinterpret_cast<FuncExpr*>(node)->funcid) != nullptr) {
    return true;
  }
  if (IsA(node, Query)) {
    return query_tree_walker(reinterpret_cast<Query*>(node), walker(), context, 0);
  }
  return expression_tree_walker(node, walker(), context);
}

bool (*walker(void))() { return reinterpret_cast<bool (*)()>(reinterpret_cast<void*>(draws)); }

/* InvalidOid in a database whose extension does not have it (yet). The client's rights to the
 * schema do not matter, as for what stands in a plan. */
Oid function_named(const char* name, Oid argument) {
  const Oid schema = rdmacc_extension_schema();
  if (!OidIsValid(schema)) return InvalidOid;
  const oidvector* arguments = buildoidvector(&argument, OidIsValid(argument) ? 1 : 0);
  return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                         PointerGetDatum(arguments), ObjectIdGetDatum(schema));
}

/* Of identity columns, with the type of the column. */
Node* identity_call(const NextValueExpr* next) {
  const Oid function = function_named("noted_identity", REGCLASSOID);
  if (!OidIsValid(function)) return nullptr;
  Const* sequence = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid),
                              ObjectIdGetDatum(next->seqid), false, true);
  FuncExpr* call = makeFuncExpr(function, INT8OID, list_make1(sequence), InvalidOid, InvalidOid,
                                COERCE_EXPLICIT_CALL);
  if (next->typeId == INT8OID) return reinterpret_cast<Node*>(call);
  const Oid cast = next->typeId == INT4OID ? F_INT4_INT8 : F_INT2_INT8;
  return reinterpret_cast<Node*>(makeFuncExpr(cast, next->typeId, list_make1(call), InvalidOid,
                                              InvalidOid, COERCE_EXPLICIT_CALL));
}

Node* replace(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (IsA(node, Query)) {
    return reinterpret_cast<Node*>(
        query_tree_mutator(reinterpret_cast<Query*>(node), mutator(), context, 0));
  }
  if (IsA(node, NextValueExpr)) {
    Node* call = identity_call(reinterpret_cast<NextValueExpr*>(node));
    if (call != nullptr) return call;
  }
  Node* copy = expression_tree_mutator(node, mutator(), context);
  if (!IsA(copy, FuncExpr)) return copy;
  auto* call = reinterpret_cast<FuncExpr*>(copy);
  const char* name = replacement_of(call->funcid);
  if (name == nullptr) return copy;
  const bool of_sequence = call->funcid == F_NEXTVAL || call->funcid == F_CURRVAL;
  const Oid argument = of_sequence ? REGCLASSOID : InvalidOid;
  const Oid function = function_named(name, argument);
  if (OidIsValid(function)) call->funcid = function;
  return copy;
}

Node* (*mutator(void))() { return reinterpret_cast<Node* (*)()>(reinterpret_cast<void*>(replace)); }

/* Whether the statement is one of a block or not: its plan may be used in one later. */
PlannedStmt* plan(Query* query, const char* text, int options, ParamListInfo params) {
  if (rdmacc_replay_limit > 0 && query->commandType != CMD_UTILITY && !rdmacc_explaining() &&
      draws(reinterpret_cast<Node*>(query), nullptr)) {
    query = reinterpret_cast<Query*>(replace(reinterpret_cast<Node*>(query), nullptr));
  }
  if (previous_planner != nullptr) return previous_planner(query, text, options, params);
  return standard_planner(query, text, options, params);
}

}  // namespace

void rdmacc_note_draws_of(RdmaccSent* sent) {
  CHECK(sent == nullptr || sent->draws_given <= list_length(sent->draws));
  drawing = sent;
  if (sent != nullptr) sent->draws_given = 0;
}

void rdmacc_noted_draws_init(void) {
  previous_planner = planner_hook;
  planner_hook = plan;
}

/* ---- The functions */

Datum rdmacc_noted_nextval(PG_FUNCTION_ARGS) {
  const Oid sequence = PG_GETARG_OID(0);
  PG_RETURN_INT64(drawn<int64>(F_NEXTVAL, sequence, [&] {
    return DatumGetInt64(DirectFunctionCall1(nextval_oid, ObjectIdGetDatum(sequence)));
  }));
}

Datum rdmacc_noted_currval(PG_FUNCTION_ARGS) {
  const Oid sequence = PG_GETARG_OID(0);
  PG_RETURN_INT64(drawn<int64>(F_CURRVAL, sequence, [&] {
    return DatumGetInt64(DirectFunctionCall1(currval_oid, ObjectIdGetDatum(sequence)));
  }));
}

Datum rdmacc_noted_lastval(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  PG_RETURN_INT64(drawn<int64>(F_LASTVAL, InvalidOid, [] {
    return DatumGetInt64(DirectFunctionCall1(lastval, static_cast<Datum>(0)));
  }));
}

Datum rdmacc_noted_identity(PG_FUNCTION_ARGS) {
  const Oid sequence = PG_GETARG_OID(0);
  PG_RETURN_INT64(drawn<int64>(F_NEXTVAL, sequence,
                               [&] { return nextval_internal(sequence, !may_insert(sequence)); }));
}

Datum rdmacc_noted_uuid(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  auto* uuid = static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t)));
  *uuid = drawn<pg_uuid_t>(F_GEN_RANDOM_UUID, InvalidOid, [] {
    return *DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, static_cast<Datum>(0)));
  });
  PG_RETURN_UUID_P(uuid);
}

Datum rdmacc_noted_random(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  PG_RETURN_FLOAT8(drawn<float8>(F_RANDOM, InvalidOid, [] {
    return DatumGetFloat8(DirectFunctionCall1(drandom, static_cast<Datum>(0)));
  }));
}

Datum rdmacc_noted_clock(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  PG_RETURN_TIMESTAMPTZ(drawn<TimestampTz>(F_CLOCK_TIMESTAMP, InvalidOid, [] {
    return DatumGetTimestampTz(DirectFunctionCall1(clock_timestamp, static_cast<Datum>(0)));
  }));
}
