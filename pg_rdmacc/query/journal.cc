#include "pg_rdmacc/query/journal.h"

#include "pg_rdmacc/query/new_attempt.h"
#include "pg_rdmacc/xact/given_numbers.h"
#include "pg_rdmacc/xact/held_cursors.h"

extern "C" {
#include "access/xact.h"
#include "nodes/plannodes.h"
#include "tcop/pquery.h"
#include "utils/datum.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/syscache.h"
}

namespace {

MemoryContext copied_memory; /* what clients have sent for COPY; under the journal's */
Size copied_bytes;           /* of them */
Size plan_bytes;             /* of plans that are kept */
MemoryContext memory; /* of the journal, under TopMemoryContext; NULL before the first block */
List* statements;     /* RdmaccSent*, in `memory` */
bool is_open;
bool is_alone;
bool has_copied; /* one of them is COPY FROM STDIN */
TimestampTz started_at;
bool started_in_recovery;

char* copy_text(RdmaccStatementText where) {
  const Size whole = strlen(where.source);
  const Size from = where.location > 0 ? static_cast<Size>(where.location) : 0;
  CHECK(from <= whole);
  const bool all = where.location < 0 || where.length <= 0;
  const Size length = all ? whole - from : Min(static_cast<Size>(where.length), whole - from);
  return pnstrdup(where.source + from, length);
}

/* What is copied is in one piece, which PostgreSQL bounds. */
Size bytes_max(void) {
  return Min(static_cast<Size>(rdmacc_replay_memory_kb) * 1024, MaxAllocSize / 2);
}

bool has_room(void) {
  return list_length(statements) < rdmacc_replay_statements &&
         MemoryContextMemAllocated(memory, false) + copied_bytes + plan_bytes <= bytes_max();
}

/* PostgreSQL watches plans that are used again, but not those that are made for one execution. */
void relation_changed(Datum, Oid relation) {
  ListCell* statement;
  foreach (statement, statements) {
    auto* sent = static_cast<RdmaccSent*>(lfirst(statement));
    if (sent->plan == nullptr || sent->plan_is_stale) continue;
    ListCell* plan;
    foreach (plan, sent->plan->stmt_list) {
      sent->plan_is_stale =
          sent->plan_is_stale || rdmacc_plan_uses(lfirst_node(PlannedStmt, plan), relation);
    }
  }
}

void function_changed(Datum, int, uint32) {
  ListCell* cell;
  foreach (cell, statements) static_cast<RdmaccSent*>(lfirst(cell))->plan_is_stale = true;
}

/* What was made for one execution lives for the journal alone from now on. */
void keep_plan(RdmaccSent* sent) {
  if (ActivePortal == nullptr || ActivePortal->cplan == nullptr) return;
  if (ActivePortal->cplan->refcount == 1) {
    plan_bytes += MemoryContextMemAllocated(ActivePortal->cplan->context, true);
  }
  sent->plan = ActivePortal->cplan;
  CHECK(sent->plan->refcount > 0);
  sent->plan->refcount++; /* until rdmacc_journal_forget() */
}

RdmaccSent* append(RdmaccStatementText where, ParamListInfo params) {
  CHECK(is_open && where.source != nullptr);
  const MemoryContext previous = MemoryContextSwitchTo(memory);
  auto* sent = static_cast<RdmaccSent*>(palloc0(sizeof(RdmaccSent)));
  sent->text = copy_text(where);
  sent->params = params != nullptr ? copyParamList(params) : nullptr;
  sent->at = GetCurrentStatementStartTimestamp();
  keep_plan(sent);
  statements = lappend(statements, sent);
  MemoryContextSwitchTo(previous);
  return sent;
}

void open_empty(bool alone) {
  CHECK(!is_open && statements == NIL);
  if (memory == nullptr) {
    memory = AllocSetContextCreate(TopMemoryContext, "rdmacc journal", ALLOCSET_SMALL_SIZES);
    CacheRegisterRelcacheCallback(relation_changed, 0);
    CacheRegisterSyscacheCallback(PROCOID, function_changed, 0);
  }
  is_open = true;
  is_alone = alone;
  started_at = GetCurrentTransactionStartTimestamp();
  started_in_recovery = TransactionStartedDuringRecovery();
  rdmacc_remember_cursors();
}

}  // namespace

void rdmacc_journal_begin(RdmaccStatementText where) {
  if (rdmacc_replay_limit == 0) return;
  open_empty(false);
  append(where, nullptr)->ended = true;
}

void rdmacc_journal_begin_alone(void) {
  CHECK(!IsTransactionBlock());
  open_empty(true);
}

bool rdmacc_journal_is_alone(void) { return is_alone; }

RdmaccSent* rdmacc_journal_add(RdmaccStatementText where, ParamListInfo params) {
  if (!is_open) return nullptr;
  /* One that has not ended has failed where that could not be noted. */
  if (!rdmacc_journal_is_whole() || !has_room()) {
    rdmacc_journal_spoil();
    return nullptr;
  }
  return append(where, params);
}

void rdmacc_journal_note_draw(RdmaccSent* sent, const RdmaccDraw* draw) {
  if (!is_open) return;
  CHECK(OidIsValid(draw->function));
  const MemoryContext previous = MemoryContextSwitchTo(memory);
  auto* copy = static_cast<RdmaccDraw*>(palloc(sizeof(RdmaccDraw)));
  *copy = *draw;
  sent->draws = lappend(sent->draws, copy);
  MemoryContextSwitchTo(previous);
  if (!has_room()) rdmacc_journal_spoil();
}

void rdmacc_journal_keep_copied(RdmaccSent* sent, const char* bytes, int length) {
  CHECK(!sent->ended && length >= 0);
  has_copied = true;
  if (sent->copied == nullptr) {
    if (copied_memory == nullptr) {
      copied_memory = AllocSetContextCreate(memory, "rdmacc copied rows", ALLOCSET_SMALL_SIZES);
    }
    const MemoryContext previous = MemoryContextSwitchTo(copied_memory);
    sent->copied = makeStringInfo();
    MemoryContextSwitchTo(previous);
  }
  if (!is_open) return;
  copied_bytes += static_cast<Size>(length);
  if (!has_room()) return rdmacc_journal_spoil();
  appendBinaryStringInfo(sent->copied, bytes, length);
}

/* A statement that is being run still has its entry. */
void rdmacc_journal_spoil(void) { is_open = false; }

void rdmacc_journal_forget(void) {
  is_open = is_alone = has_copied = false;
  rdmacc_numbers_forget();
  if (statements == NIL) return;
  ListCell* cell;
  foreach (cell, statements) {
    CachedPlan* plan = static_cast<RdmaccSent*>(lfirst(cell))->plan;
    if (plan != nullptr) ReleaseCachedPlan(plan, nullptr);
  }
  statements = NIL;
  copied_bytes = plan_bytes = 0;
  copied_memory = nullptr;
  MemoryContextReset(memory);
}

bool rdmacc_journal_has_copied(void) { return has_copied; }

bool rdmacc_journal_is_open(void) { return is_open; }

bool rdmacc_journal_is_whole(void) {
  return is_open && (statements == NIL || static_cast<RdmaccSent*>(llast(statements))->ended);
}

TimestampTz rdmacc_journal_started_at(void) { return started_at; }

bool rdmacc_journal_started_in_recovery(void) { return started_in_recovery; }

int rdmacc_journal_count(void) { return list_length(statements); }

RdmaccSent* rdmacc_journal_at(int index) {
  CHECK(index >= 0 && index < list_length(statements));
  return static_cast<RdmaccSent*>(list_nth(statements, index));
}
