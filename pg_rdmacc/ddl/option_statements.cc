/* WITH (rdmacc.…), SET and RESET of the same, SECURITY LABEL FOR rdmacc, and rdmacc.set_option():
 * all come to a new label, and to a rewrite of the table when the label has changed. */
#include "pg_rdmacc/ddl/table_files.h"
#include "pg_rdmacc/ddl/utility.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/table_options.h"
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/cluster.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PGDLLEXPORT Datum rdmacc_set_option(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_set_option);
}

namespace {

ProcessUtility_hook_type previous_hook;

/* The rows go into an engine table made by the options that hold now. */
void rewrite(Oid relation) {
  ClusterParams parameters = {};
  CommandCounterIncrement();
  cluster_rel(relation, InvalidOid, &parameters);
  CommandCounterIncrement();
}

/* Raises 42501 for all but the owner. */
Oid lock_own_table(const RangeVar* name) {
  return RangeVarGetRelidExtended(name, AccessExclusiveLock, RVR_MISSING_OK,
                                  RangeVarCallbackOwnsRelation, nullptr);
}

bool is_one_of_ours(Oid relation) {
  return rdmacc_relation_is_ours(relation) &&
         get_rel_relkind(relation) != RELKIND_PARTITIONED_TABLE;
}

/* The elements that are ours, which leave the list: PostgreSQL refuses them. */
List* take_own(List** elements) {
  List* own = NIL;
  ListCell* cell;
  foreach (cell, *elements) {
    auto* element = static_cast<DefElem*>(lfirst(cell));
    const char* space = element->defnamespace;
    if (space == nullptr || strcmp(space, RDMACC_LABEL_PROVIDER) != 0) continue;
    own = lappend(own, element);
    *elements = foreach_delete_current(*elements, cell);
  }
  return own;
}

void apply(Oid relation, List* elements, bool reset) {
  if (!is_one_of_ours(relation)) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("\"%s\" is not an rdmacc table", get_rel_name(relation)),
                    errhint("Options named rdmacc.* are for tables USING rdmacc.")));
  }
  RdmaccTableOptions options;
  rdmacc_table_options_of(relation, &options);
  ListCell* cell;
  foreach (cell, elements) {
    auto* element = static_cast<DefElem*>(lfirst(cell));
    rdmacc_set_table_option(&options, element->defname, reset ? nullptr : defGetString(element));
  }
  rdmacc_keep_layout(relation);
  if (rdmacc_change_table_options(relation, &options)) rewrite(relation);
}

struct OwnOptions {
  const RangeVar* relation;
  bool existed; /* CREATE ... IF NOT EXISTS leaves it as it is */
  List* set;
  List* reset;
};

List** options_list(Node* statement) {
  if (IsA(statement, CreateStmt)) return &reinterpret_cast<CreateStmt*>(statement)->options;
  if (!IsA(statement, CreateTableAsStmt)) return nullptr;
  return &reinterpret_cast<CreateTableAsStmt*>(statement)->into->options;
}

void take_from_alter(AlterTableStmt* alter, OwnOptions* own) {
  own->relation = alter->relation;
  ListCell* cell;
  foreach (cell, alter->cmds) {
    auto* command = static_cast<AlterTableCmd*>(lfirst(cell));
    auto** elements = reinterpret_cast<List**>(&command->def);
    if (command->subtype == AT_SetRelOptions) {
      own->set = list_concat(own->set, take_own(elements));
    } else if (command->subtype == AT_ResetRelOptions) {
      own->reset = list_concat(own->reset, take_own(elements));
    } else {
      continue;
    }
    if (*elements == NIL) alter->cmds = foreach_delete_current(alter->cmds, cell);
  }
}

OwnOptions take_from(Node* statement) {
  OwnOptions own = {};
  if (IsA(statement, AlterTableStmt)) {
    take_from_alter(reinterpret_cast<AlterTableStmt*>(statement), &own);
  } else if (List** elements = options_list(statement)) {
    own.set = take_own(elements);
    own.relation = IsA(statement, CreateStmt)
                       ? reinterpret_cast<CreateStmt*>(statement)->relation
                       : reinterpret_cast<CreateTableAsStmt*>(statement)->into->rel;
  }
  return own;
}

bool is_there(const RangeVar* name) { return OidIsValid(RangeVarGetRelid(name, NoLock, true)); }

/* The statement without what is ours; a plan in the cache is not touched. */
PlannedStmt* without_own(PlannedStmt* statement, bool read_only, OwnOptions* own) {
  const Node* node = statement->utilityStmt;
  const bool creates = IsA(node, CreateStmt) || IsA(node, CreateTableAsStmt);
  if (!creates && !IsA(node, AlterTableStmt)) return statement;
  PlannedStmt* changed =
      read_only ? static_cast<PlannedStmt*>(copyObjectImpl(statement)) : statement;
  *own = take_from(changed->utilityStmt);
  if (own->set == NIL && own->reset == NIL) return statement;
  own->relation = static_cast<const RangeVar*>(copyObjectImpl(own->relation));
  own->existed = creates && is_there(own->relation);
  return changed;
}

void apply_own(OwnOptions* own) {
  if (own->relation == nullptr || own->existed) return;
  if (own->set == NIL && own->reset == NIL) return;
  const Oid relation = lock_own_table(own->relation);
  if (!OidIsValid(relation)) return; /* ALTER TABLE IF EXISTS, CREATE TABLE ... WITH NO DATA */
  if (own->set != NIL) apply(relation, own->set, false);
  if (own->reset != NIL) apply(relation, own->reset, true);
}

/* The table whose options a SECURITY LABEL sets, as dumps do; InvalidOid for any other. */
Oid labelled_table(const Node* node) {
  if (!IsA(node, SecLabelStmt)) return InvalidOid;
  const auto* statement = reinterpret_cast<const SecLabelStmt*>(node);
  if (statement->objtype != OBJECT_TABLE && statement->objtype != OBJECT_MATVIEW) return InvalidOid;
  if (statement->provider != nullptr && strcmp(statement->provider, RDMACC_LABEL_PROVIDER) != 0) {
    return InvalidOid;
  }
  auto* names = reinterpret_cast<List*>(statement->object);
  const Oid relation = lock_own_table(makeRangeVarFromNameList(names));
  return OidIsValid(relation) && is_one_of_ours(relation) ? relation : InvalidOid;
}

/* A table of ours that becomes a view. */
Oid table_of_view(const RuleStmt* rule) {
  if (rule->event != CMD_SELECT || !rule->instead) return InvalidOid;
  const Oid relation = lock_own_table(rule->relation);
  return OidIsValid(relation) && rdmacc_relation_is_ours(relation) ? relation : InvalidOid;
}

/* The table that ALTER TABLE ... SET ACCESS METHOD names, or that becomes a view; InvalidOid of any
 * other statement. */
Oid converted_table(Node* node) {
  if (IsA(node, RuleStmt)) return table_of_view(reinterpret_cast<const RuleStmt*>(node));
  if (!IsA(node, AlterTableStmt)) return InvalidOid;
  auto* alter = reinterpret_cast<AlterTableStmt*>(node);
  ListCell* cell;
  foreach (cell, alter->cmds) {
    if (static_cast<AlterTableCmd*>(lfirst(cell))->subtype == AT_SetAccessMethod) {
      return lock_own_table(alter->relation);
    }
  }
  return InvalidOid;
}

/* Before the statement, since indexes are made as the label says: one that stays as it was loses it
 * again. */
void label_before_conversion(Oid relation) {
  if (OidIsValid(relation) && get_rel_relkind(relation) == RELKIND_RELATION &&
      !rdmacc_relation_is_ours(relation)) {
    rdmacc_label_new_table(relation);
    CommandCounterIncrement();
  }
}

void unlabel_after_conversion(Oid relation) {
  if (!OidIsValid(relation)) return;
  CommandCounterIncrement();
  if (!rdmacc_relation_is_ours(relation)) rdmacc_unlabel_table(relation);
}

void process_utility(PlannedStmt* statement, const char* text, bool read_only_tree,
                     ProcessUtilityContext context, ParamListInfo params,
                     QueryEnvironment* environment, DestReceiver* destination,
                     QueryCompletion* completion) {
  OwnOptions own = {};
  RdmaccTableOptions before;
  Oid labelled = InvalidOid;
  Oid converted = InvalidOid;
  /* Transaction control may not touch the catalog. */
  if (!IsA(statement->utilityStmt, TransactionStmt) && IsTransactionState()) {
    statement = without_own(statement, read_only_tree, &own);
    labelled = labelled_table(statement->utilityStmt);
    converted = converted_table(statement->utilityStmt);
    label_before_conversion(converted);
    if (OidIsValid(labelled)) {
      rdmacc_table_options_of(labelled, &before);
      rdmacc_keep_layout(labelled);
    }
  }
  previous_hook(statement, text, read_only_tree, context, params, environment, destination,
                completion);
  unlabel_after_conversion(converted);
  apply_own(&own);
  if (!OidIsValid(labelled)) return;
  CommandCounterIncrement();
  RdmaccTableOptions now;
  rdmacc_table_options_of(labelled, &now);
  if (memcmp(&before, &now, sizeof(now)) != 0) rewrite(labelled);
}

}  // namespace

/* set_option(regclass, text, text): the value NULL stands for the default. */
Datum rdmacc_set_option(PG_FUNCTION_ARGS) {
  PreventCommandIfReadOnly("rdmacc.set_option()");
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("table and name of an option cannot be null")));
  }
  const Oid relation = PG_GETARG_OID(0);
  if (get_rel_name(relation) == nullptr) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation with OID %u does not exist", relation)));
  }
  if (!pg_class_ownercheck(relation, GetUserId())) {
    aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relation));
  }
  LockRelationOid(relation, AccessExclusiveLock);
  DefElem* element = makeDefElem(
      text_to_cstring(PG_GETARG_TEXT_PP(1)),
      PG_ARGISNULL(2) ? nullptr
                      : reinterpret_cast<Node*>(makeString(text_to_cstring(PG_GETARG_TEXT_PP(2)))),
      -1);
  apply(relation, list_make1(element), PG_ARGISNULL(2));
  PG_RETURN_VOID();
}

void rdmacc_option_statements_init(void) {
  previous_hook = ProcessUtility_hook != nullptr ? ProcessUtility_hook : standard_ProcessUtility;
  ProcessUtility_hook = process_utility;
}
