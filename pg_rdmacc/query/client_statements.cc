#include "pg_rdmacc/query/client_statements.h"

#include "pg_rdmacc/ddl/exclusive_load.h"
#include "pg_rdmacc/query/block.h"
#include "pg_rdmacc/query/draw_plans.h"
#include "pg_rdmacc/query/lasting_effects.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/noted_draws.h"
#include "pg_rdmacc/query/replay.h"
#include "pg_rdmacc/query/sent_statement.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/xact/held_cursors.h"
#include "pg_rdmacc/xact/running_query.h"

extern "C" {
#include "access/xact.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/portal.h"
}

namespace {

ProcessUtility_hook_type previous_utility;

bool began;      /* the client has had a statement run in this transaction */
bool explaining; /* EXPLAIN is being run */

struct Utility {
  PlannedStmt* statement;
  const char* text;
  bool read_only_tree;
  ProcessUtilityContext context;
  ParamListInfo params;
  QueryEnvironment* environment;
};

void run_utility(const Utility* utility, DestReceiver* receiver, QueryCompletion* completion) {
  const bool outer = explaining;
  PG_TRY();
  {
    explaining = outer || IsA(utility->statement->utilityStmt, ExplainStmt);
    previous_utility(rdmacc_with_noted_draws(utility->statement), utility->text,
                     utility->read_only_tree, utility->context, utility->params,
                     utility->environment, receiver, completion);
  }
  PG_FINALLY();
  { explaining = outer; }
  PG_END_TRY();
}

void run_step(void* argument, DestReceiver* receiver, QueryCompletion* completion) {
  run_utility(static_cast<const Utility*>(argument), receiver, completion);
}

RdmaccStatementText text_of(const Utility* utility) {
  return {utility->text, utility->statement->stmt_location, utility->statement->stmt_len};
}

bool analyzes(const ExplainStmt* explain) {
  bool analyze = false;
  ListCell* cell;
  foreach (cell, explain->options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "analyze") == 0) analyze = defGetBoolean(option);
  }
  return analyze;
}

struct UtilityRun {
  const Utility* utility;
  DestReceiver* receiver;
  QueryCompletion* completion;
};

void run_one(void* argument) {
  const auto* run = static_cast<const UtilityRun*>(argument);
  run_utility(run->utility, run->receiver, run->completion);
}

/* A statement that is no step of the journal: what it has read may not fit together. */
void run_once(const Utility* utility, DestReceiver* receiver, QueryCompletion* completion) {
  UtilityRun run = {utility, receiver, completion};
  rdmacc_run_validated(run_one, &run);
}

/* It has no effect that a ROLLBACK takes back, and tells nothing that others can change. (SHOW may
 * tell what a function has set to a value that it has read.) */
bool leaves_nothing(const Node* node) {
  switch (nodeTag(node)) {
    case T_PrepareStmt:
      return true;
    case T_ExplainStmt:
      return !analyzes(reinterpret_cast<const ExplainStmt*>(node));
    default:
      return false;
  }
}

/* A snapshot, and how the text of statements is read: those of one message have been read before.
 */
bool sets_what_cannot_be_set_again(const VariableSetStmt* statement) {
  const char* const names[] = {"TRANSACTION SNAPSHOT", "standard_conforming_strings",
                               "backslash_quote"};
  if (statement->name == nullptr) return false;
  for (const char* name : names) {
    if (pg_strcasecmp(statement->name, name) == 0) return true;
  }
  return false;
}

/* Rows come from outside, go to the client as no rows do, or stay in a cursor; what the journal
 * names is no longer there. */
bool cannot_be_run_again(const Node* node) {
  switch (nodeTag(node)) {
    case T_CopyStmt:
      return rdmacc_copy_from_client(node) == nullptr;
    case T_DoStmt:
      return rdmacc_code_may_reach_outside(reinterpret_cast<const DoStmt*>(node));
    case T_DeclareCursorStmt:
    case T_FetchStmt:
    case T_ClosePortalStmt:
    case T_DeallocateStmt:
    case T_ExplainStmt:
    case T_CheckPointStmt:
    case T_LoadStmt:
      return true;
    case T_VariableSetStmt:
      return sets_what_cannot_be_set_again(reinterpret_cast<const VariableSetStmt*>(node));
    case T_DiscardStmt: /* a number that is given again is not what currval() tells behind it */
      return reinterpret_cast<const DiscardStmt*>(node)->target == DISCARD_SEQUENCES;
    default:
      return false;
  }
}

/* Subtransactions begin and end when the statement has ended. */
void run_savepoint(const Utility* utility, DestReceiver* receiver, QueryCompletion* completion) {
  RdmaccSent* sent = rdmacc_journal_add(text_of(utility), utility->params);
  run_utility(utility, receiver, completion);
  if (sent != nullptr) sent->ended = true;
}

void run_transaction_statement(const Utility* utility, DestReceiver* receiver,
                               QueryCompletion* completion) {
  const auto* node = reinterpret_cast<const TransactionStmt*>(utility->statement->utilityStmt);
  switch (node->kind) {
    case TRANS_STMT_BEGIN:
    case TRANS_STMT_START: {
      const bool first = !began;
      began = true;
      run_utility(utility, receiver, completion);
      if (first) {
        rdmacc_journal_begin(text_of(utility));
      } else {
        rdmacc_journal_spoil();
      }
      return;
    }
    case TRANS_STMT_ROLLBACK_TO:
      rdmacc_come_back_after_cancel();
      return run_savepoint(utility, receiver, completion);
    case TRANS_STMT_SAVEPOINT:
    case TRANS_STMT_RELEASE:
      return run_savepoint(utility, receiver, completion);
    case TRANS_STMT_COMMIT:
      if (!IsAbortedTransactionBlockState()) rdmacc_commit_block();
      break;
    case TRANS_STMT_PREPARE:
      if (!IsAbortedTransactionBlockState()) rdmacc_check_block();
      break;
    default:
      break;
  }
  run_utility(utility, receiver, completion);
}

/* It is all of a transaction, which may lose. (DO and CALL may commit in between: that spoils the
 * journal.) */
bool may_be_alone(const Node* node) {
  const bool may_lose =
      IsA(node, CallStmt) || IsA(node, DoStmt) || IsA(node, ExecuteStmt) || IsA(node, CopyStmt);
  return may_lose && rdmacc_auto_retry > 0 && OidIsValid(rdmacc_access_method()) &&
         rdmacc_is_whole_transaction();
}

/* It stays when the attempt does not, and would be another thing the second time: there is the
 * prepared statement, a cursor of an earlier transaction has moved, a program has got its rows. */
bool stays_after_rollback(const Node* node) {
  switch (nodeTag(node)) {
    case T_PrepareStmt:
    case T_DeallocateStmt:
    case T_FetchStmt:
    case T_ClosePortalStmt:
      return true;
    case T_CopyStmt:
      return reinterpret_cast<const CopyStmt*>(node)->is_program;
    case T_DoStmt:
      return rdmacc_code_may_reach_outside(reinterpret_cast<const DoStmt*>(node));
    default:
      return false;
  }
}

/* Within a function. */
void note_nested(const Node* node) {
  const bool stays = stays_after_rollback(node);
  if (stays) rdmacc_attempt_stays();
  if (!rdmacc_journal_is_open()) return;
  if (stays || (!leaves_nothing(node) && cannot_be_run_again(node))) rdmacc_journal_spoil();
}

/* What fails here has failed in the statement, which is not in the journal. */
bool copy_may_come_again(const CopyStmt* copy, bool alone) {
  volatile bool may = false;
  PG_TRY();
  { may = rdmacc_copy_may_come_again(copy, alone); }
  PG_CATCH();
  {
    rdmacc_journal_spoil();
    PG_RE_THROW();
  }
  PG_END_TRY();
  return may;
}

/* What the client sends is looked at when it is there (copied_rows.h). */
void prepare_copy_of_file(const Node* node) {
  if (!IsA(node, CopyStmt) || rdmacc_journal_is_open() || !rdmacc_is_whole_transaction()) return;
  const auto* copy = reinterpret_cast<const CopyStmt*>(node);
  if (!rdmacc_copies_large_file(copy)) return;
  const Oid target = rdmacc_exclusive_target_of_copy(copy);
  if (OidIsValid(target)) rdmacc_load_exclusively(target);
}

void run_client_utility(Utility* utility, DestReceiver* receiver, QueryCompletion* completion) {
  CHECK(ActivePortal != nullptr && !rdmacc_replaying());
  const Node* node = utility->statement->utilityStmt;
  if (IsA(node, TransactionStmt)) {
    return run_transaction_statement(utility, receiver, completion);
  }
  began = true;
  if (leaves_nothing(node)) return run_once(utility, receiver, completion);
  const CopyStmt* copy = rdmacc_copy_from_client(node);
  prepare_copy_of_file(node);
  const bool alone = !rdmacc_journal_is_open() && may_be_alone(node);
  if (!alone && !rdmacc_journal_is_open()) return run_once(utility, receiver, completion);
  if (cannot_be_run_again(node) || (copy != nullptr && !copy_may_come_again(copy, alone))) {
    rdmacc_journal_spoil();
    return run_once(utility, receiver, completion);
  }
  const RdmaccStep step = {.run = run_step,
                           .argument = utility,
                           .copy = copy,
                           .prepared_at = rdmacc_prepared_at(node),
                           .text = text_of(utility),
                           .params = utility->params,
                           .receiver = receiver,
                           .completion = completion};
  if (alone) {
    rdmacc_run_step_alone(&step);
  } else {
    rdmacc_run_step_in_block(&step);
  }
}

void process_utility(PlannedStmt* statement, const char* text, bool read_only_tree,
                     ProcessUtilityContext context, ParamListInfo params,
                     QueryEnvironment* environment, DestReceiver* destination,
                     QueryCompletion* completion) {
  if (IsA(statement->utilityStmt, DeclareCursorStmt)) {
    rdmacc_note_cursor(reinterpret_cast<const DeclareCursorStmt*>(statement->utilityStmt));
  }
  Utility utility = {statement, text, read_only_tree, context, params, environment};
  const bool of_client = context == PROCESS_UTILITY_TOPLEVEL && ActivePortal != nullptr &&
                         !rdmacc_in_utility() && rdmacc_running_query() == nullptr &&
                         !rdmacc_replaying();
  if (of_client) {
    run_client_utility(&utility, destination, completion);
  } else {
    if (context != PROCESS_UTILITY_TOPLEVEL) note_nested(statement->utilityStmt);
    run_utility(&utility, destination, completion);
  }
}

void transaction_ended(XactEvent event, void*) {
  const bool ended =
      event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE;
  if (!ended) return;
  if (rdmacc_journal_is_alone()) {
    /* A procedure has committed what must not be done again. */
    if (event == XACT_EVENT_COMMIT) rdmacc_journal_spoil();
    return;
  }
  if (rdmacc_replaying()) return;
  rdmacc_note_draws_of(nullptr);
  rdmacc_journal_forget();
  began = false;
}

}  // namespace

void rdmacc_note_partial_query(const QueryDesc* query) {
  const PortalData* portal = ActivePortal;
  if (rdmacc_replaying() || rdmacc_in_utility()) return;
  if (portal == nullptr || !list_member_ptr(portal->stmts, query->plannedstmt)) return;
  began = true;
  rdmacc_journal_spoil();
}

namespace {

/* A portal that is bound for later, or whose rows are there already. PostgreSQL's function leaves
 * a scan of its table open when it finds one, of which the commit would warn; no other scan is open
 * where a statement of the client's begins. */
bool portals_are_ready(void) {
  if (ThereAreNoReadyPortals()) return false;
  AtEOSubXact_HashTables(false, GetCurrentTransactionNestLevel());
  return true;
}

}  // namespace

void rdmacc_note_client_query(void) {
  began = true;
  if (!rdmacc_journal_is_open()) return;
  /* What the transaction has begun to read, or may still. Held cursors are no query any more. */
  if (rdmacc_other_queries_open() || (!rdmacc_holds_cursors() && portals_are_ready())) {
    rdmacc_journal_spoil();
  }
}

bool rdmacc_explaining(void) { return explaining; }

void rdmacc_client_statements_init(void) {
  previous_utility = ProcessUtility_hook != nullptr ? ProcessUtility_hook : standard_ProcessUtility;
  ProcessUtility_hook = process_utility;
  RegisterXactCallback(transaction_ended, nullptr);
}
