#include "pg_rdmacc/query/noted_draws.h"

#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/xact/given_numbers.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
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

/* The journal may be spoiled. */
bool may_come_again(void) { return rdmacc_journal_count() > 0 || rdmacc_numbers_are_kept(); }

/* draw() returns int64. */
template <typename Draw>
int64 number_of(Oid sequence, Draw draw) {
  const auto draw_and_keep = [&] {
    const int64 number = draw();
    if (may_come_again()) rdmacc_number_drawn(sequence, number);
    return number;
  };
  const int64 number = drawn<int64>(F_NEXTVAL, sequence, draw_and_keep);
  if (may_come_again()) rdmacc_number_given(sequence, number);
  return number;
}

/* The number that was drawn last may be COPY's, which draws another one the next time. */
void note_that_it_tells_a_number(void) {
  if (!rdmacc_journal_has_copied()) return;
  rdmacc_journal_spoil();
  if (rdmacc_numbers_are_given_again()) {
    rdmacc_raise_lost(
        "The block was run again after a conflict, in which COPY may have drawn other numbers of "
        "a sequence.");
  }
}

[[noreturn]] void raise_unknown_number(void) {
  rdmacc_raise_lost(
      "The block was run again after a conflict, and asks for a sequence's number that only an "
      "earlier attempt has drawn.");
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

}  // namespace

void rdmacc_give_numbers_of(const RdmaccSent* sent) {
  ListCell* cell;
  foreach (cell, sent->draws) {
    const auto* draw = static_cast<const RdmaccDraw*>(lfirst(cell));
    if (draw->function != F_NEXTVAL) continue;
    int64 number = 0;
    memcpy(&number, draw->bytes, sizeof(number));
    rdmacc_number_given(draw->object, number);
  }
}

void rdmacc_note_draws_of(RdmaccSent* sent) {
  CHECK(sent == nullptr || sent->draws_given <= list_length(sent->draws));
  drawing = sent;
  if (sent != nullptr) sent->draws_given = 0;
}

/* ---- The functions, for the others: with the rights to those. As PostgreSQL does, once for each
 * time that a plan is made ready. */

namespace {

void check_right(FunctionCallInfo call, Oid function) {
  CHECK(call->flinfo != nullptr && OidIsValid(function));
  static char has_right;
  if (call->flinfo->fn_extra == &has_right) return;
  const AclResult may = pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE);
  if (may != ACLCHECK_OK) aclcheck_error(may, OBJECT_FUNCTION, get_func_name(function));
  call->flinfo->fn_extra = &has_right;
}

}  // namespace

Datum rdmacc_noted_nextval(PG_FUNCTION_ARGS) {
  check_right(fcinfo, F_NEXTVAL);
  const Oid sequence = PG_GETARG_OID(0);
  PG_RETURN_INT64(number_of(sequence, [&] {
    return DatumGetInt64(DirectFunctionCall1(nextval_oid, ObjectIdGetDatum(sequence)));
  }));
}

Datum rdmacc_noted_currval(PG_FUNCTION_ARGS) {
  check_right(fcinfo, F_CURRVAL);
  note_that_it_tells_a_number();
  const Oid sequence = PG_GETARG_OID(0);
  int64 number = DatumGetInt64(DirectFunctionCall1(currval_oid, ObjectIdGetDatum(sequence)));
  if (may_come_again() && !rdmacc_current_number(sequence, &number)) raise_unknown_number();
  PG_RETURN_INT64(number);
}

Datum rdmacc_noted_lastval(PG_FUNCTION_ARGS) {
  check_right(fcinfo, F_LASTVAL);
  note_that_it_tells_a_number();
  int64 number = DatumGetInt64(DirectFunctionCall1(lastval, static_cast<Datum>(0)));
  if (may_come_again() && !rdmacc_last_number(&number)) raise_unknown_number();
  PG_RETURN_INT64(number);
}

Datum rdmacc_noted_identity(PG_FUNCTION_ARGS) {
  const Oid sequence = PG_GETARG_OID(0);
  PG_RETURN_INT64(
      number_of(sequence, [&] { return nextval_internal(sequence, !may_insert(sequence)); }));
}

Datum rdmacc_noted_uuid(PG_FUNCTION_ARGS) {
  check_right(fcinfo, F_GEN_RANDOM_UUID);
  auto* uuid = static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t)));
  *uuid = drawn<pg_uuid_t>(F_GEN_RANDOM_UUID, InvalidOid, [] {
    return *DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, static_cast<Datum>(0)));
  });
  PG_RETURN_UUID_P(uuid);
}

Datum rdmacc_noted_random(PG_FUNCTION_ARGS) {
  check_right(fcinfo, F_RANDOM);
  PG_RETURN_FLOAT8(drawn<float8>(F_RANDOM, InvalidOid, [] {
    return DatumGetFloat8(DirectFunctionCall1(drandom, static_cast<Datum>(0)));
  }));
}

Datum rdmacc_noted_clock(PG_FUNCTION_ARGS) {
  check_right(fcinfo, F_CLOCK_TIMESTAMP);
  PG_RETURN_TIMESTAMPTZ(drawn<TimestampTz>(F_CLOCK_TIMESTAMP, InvalidOid, [] {
    return DatumGetTimestampTz(DirectFunctionCall1(clock_timestamp, static_cast<Datum>(0)));
  }));
}
