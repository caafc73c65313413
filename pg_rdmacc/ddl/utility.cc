/* Utility statements: what default_table_access_method must not mean, what has to be refused before
 * it is half done, and rows of other tables that are written outside the executor. */
#include "pg_rdmacc/ddl/utility.h"

#include "pg_rdmacc/ddl/index_statements.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/own_tables.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "parser/parse_func.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
}

namespace {

ProcessUtility_hook_type previous_hook;

bool default_is_ours(void) {
  return strcmp(default_table_access_method, RDMACC_ACCESS_METHOD) == 0;
}

bool is_ours(const char* access_method) {
  return access_method != nullptr ? strcmp(access_method, RDMACC_ACCESS_METHOD) == 0
                                  : default_is_ours();
}

/* ---- Before */

bool is_temporary(const RangeVar* relation) {
  if (relation->relpersistence == RELPERSISTENCE_TEMP) return true;
  const char* schema =
      relation->schemaname != nullptr ? relation->schemaname : namespace_search_path;
  return strncmp(schema, "pg_temp", strlen("pg_temp")) == 0;
}

/* Temporary tables are never ours by default, so that scripts which make some go on working. */
char* access_method_for(const RangeVar* relation, char* named) {
  const bool by_default = named == nullptr && default_is_ours();
  return by_default && is_temporary(relation) ? pstrdup("heap") : named;
}

/* The statement, changed if need be; a plan in the cache is not touched. */
PlannedStmt* with_heap_by_default(PlannedStmt* statement, bool read_only) {
  Node* node = statement->utilityStmt;
  if (!default_is_ours() || (!IsA(node, CreateStmt) && !IsA(node, CreateTableAsStmt))) {
    return statement;
  }
  PlannedStmt* changed =
      read_only ? static_cast<PlannedStmt*>(copyObjectImpl(statement)) : statement;
  node = changed->utilityStmt;
  if (IsA(node, CreateStmt)) {
    auto* create = reinterpret_cast<CreateStmt*>(node);
    if (create->partspec == nullptr) {
      create->accessMethod = access_method_for(create->relation, create->accessMethod);
    }
  } else {
    IntoClause* into = reinterpret_cast<CreateTableAsStmt*>(node)->into;
    into->accessMethod = access_method_for(into->rel, into->accessMethod);
  }
  return changed;
}

/* ---- What is written outside of the executor */

void note_copied_into(Oid relation) {
  ListCell* cell;
  switch (get_rel_relkind(relation)) {
    case RELKIND_PARTITIONED_TABLE:
      foreach (cell, find_inheritance_children(relation, NoLock)) {
        note_copied_into(lfirst_oid(cell));
      }
      break;
    case RELKIND_FOREIGN_TABLE:
      rdmacc_note_foreign_server();
      break;
    case RELKIND_RELATION:
      if (get_rel_persistence(relation) == RELPERSISTENCE_TEMP) break;
      if (!rdmacc_relation_is_ours(relation)) rdmacc_note_foreign_write();
      break;
    default:
      break;
  }
}

void note_copy(const CopyStmt* statement) {
  if (!statement->is_from || statement->relation == nullptr) return;
  const Oid relation = RangeVarGetRelid(statement->relation, NoLock, true);
  if (OidIsValid(relation)) note_copied_into(relation);
}

void note_create_as(const CreateTableAsStmt* statement) {
  const IntoClause* into = statement->into;
  if (into->skipData || into->rel->relpersistence == RELPERSISTENCE_TEMP) return;
  if (!is_ours(into->accessMethod)) rdmacc_note_foreign_write();
}

/* Which tables are ours is told by the access method that the extension makes. */
void check_access_method(const CreateAmStmt* create) {
  const Oid argument = INTERNALOID;
  if (create->amtype != AMTYPE_TABLE ||
      LookupFuncName(create->handler_name, 1, &argument, true) != rdmacc_handler()) {
    return;
  }
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("access method \"%s\" cannot have the handler of rdmacc", create->amname),
                  errhint("Use the access method rdmacc.")));
}

void before(Node* statement) {
  switch (nodeTag(statement)) {
    case T_CopyStmt: /* which may fail where a function catches its error */
      note_copy(reinterpret_cast<const CopyStmt*>(statement));
      break;
    case T_AlterTableStmt:
    case T_AlterTableMoveAllStmt:
      rdmacc_check_index_statement(statement);
      break;
    case T_CreatePublicationStmt:
    case T_AlterPublicationStmt:
      rdmacc_check_publication(statement);
      break;
    case T_CreateAmStmt:
      check_access_method(reinterpret_cast<const CreateAmStmt*>(statement));
      break;
    default:
      break;
  }
}

void after(Node* statement) {
  switch (nodeTag(statement)) {
    case T_CopyStmt: /* once more: a partition may have been attached before it began */
      note_copy(reinterpret_cast<const CopyStmt*>(statement));
      break;
    case T_CreateTableAsStmt:
      note_create_as(reinterpret_cast<const CreateTableAsStmt*>(statement));
      break;
    case T_CreateStmt:
    case T_AlterTableStmt:
      rdmacc_check_if_published(statement);
      break;
    default:
      break;
  }
}

/* Of the snapshot that the statement imports, a copy; nullptr when it imports none. */
const char* imported_snapshot(const Node* statement) {
  if (!IsA(statement, VariableSetStmt)) return nullptr;
  const auto* set = reinterpret_cast<const VariableSetStmt*>(statement);
  if (set->kind != VAR_SET_MULTI || strcmp(set->name, "TRANSACTION SNAPSHOT") != 0) return nullptr;
  return pstrdup(strVal(&linitial_node(A_Const, set->args)->val));
}

/* By itself it leaves nothing for the end of the transaction to do. What it runs is asked, too. */
bool leaves_nothing_for_commit(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_TransactionStmt:
    case T_VariableSetStmt:
    case T_VariableShowStmt:
    case T_ConstraintsSetStmt:
    case T_PrepareStmt:
    case T_ExecuteStmt:
    case T_DeallocateStmt:
    case T_DoStmt:
    case T_CallStmt:
    case T_ExplainStmt:
    case T_LockStmt:
    case T_CopyStmt: /* unless its table is of a foreign server: note_copy() */
      return true;
    default:
      return false;
  }
}

/* Also what object_access.cc does not hear of: TRUNCATE, REINDEX, GRANT, COMMENT, triggers that are
 * switched off. PostgreSQL's commit record decides about such a change, and so it has to about rows
 * of the same transaction. */
bool changes_catalog(Node* node) {
  switch (nodeTag(node)) {
    case T_NotifyStmt:
    case T_TruncateStmt:
    case T_ReindexStmt:
      return true;
    case T_PrepareStmt: /* what these execute comes by itself */
    case T_ExecuteStmt:
    case T_ExplainStmt:
      return false;
    default:
      return GetCommandLogLevel(node) == LOGSTMT_DDL;
  }
}

void run(PlannedStmt* statement, const char* text, bool read_only_tree,
         ProcessUtilityContext context, ParamListInfo params, QueryEnvironment* environment,
         DestReceiver* destination, QueryCompletion* completion) {
  const RdmaccUtility outer = rdmacc_begin_utility(statement->utilityStmt);
  if (!leaves_nothing_for_commit(statement->utilityStmt)) rdmacc_note_utility();
  PG_TRY();
  {
    previous_hook(statement, text, read_only_tree, context, params, environment, destination,
                  completion);
  }
  PG_FINALLY();
  { rdmacc_end_utility(outer); }
  PG_END_TRY();
}

void process_utility(PlannedStmt* statement, const char* text, bool read_only_tree,
                     ProcessUtilityContext context, ParamListInfo params,
                     QueryEnvironment* environment, DestReceiver* destination,
                     QueryCompletion* completion) {
  const NodeTag tag = nodeTag(statement->utilityStmt);
  /* Transaction control may not touch the catalog. */
  const bool looks = tag != T_TransactionStmt && tag != T_VariableSetStmt &&
                     tag != T_VariableShowStmt && tag != T_FetchStmt && IsTransactionState() &&
                     OidIsValid(rdmacc_access_method());
  if (looks) {
    before(statement->utilityStmt);
    statement = with_heap_by_default(statement, read_only_tree);
    statement = rdmacc_without_concurrently(statement, read_only_tree, context);
  }
  if (tag == T_CreatedbStmt && IsTransactionState()) {
    rdmacc_check_template(reinterpret_cast<const CreatedbStmt*>(statement->utilityStmt));
  }
  /* Statements that commit by themselves may free their own tree. */
  const bool looks_after = looks && (tag == T_CopyStmt || tag == T_CreateTableAsStmt ||
                                     tag == T_CreateStmt || tag == T_AlterTableStmt);
  const bool changes = changes_catalog(statement->utilityStmt);
  const char* imported = imported_snapshot(statement->utilityStmt);
  run(statement, text, read_only_tree, context, params, environment, destination, completion);
  if (imported != nullptr) rdmacc_snapshot_is_imported(imported);
  if (changes && IsTransactionState()) rdmacc_note_catalog_write();
  if (tag == T_DropdbStmt) rdmacc_note_dropped_database();
  if (looks_after) after(statement->utilityStmt);
}

}  // namespace

void rdmacc_ddl_init(void) {
  rdmacc_shadow_index_init();
  rdmacc_object_access_init();
  previous_hook = ProcessUtility_hook != nullptr ? ProcessUtility_hook : standard_ProcessUtility;
  ProcessUtility_hook = process_utility;
}
