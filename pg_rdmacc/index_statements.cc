#include "pg_rdmacc/index_statements.h"

#include "pg_rdmacc/access_method.h"

extern "C" {
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "nodes/parsenodes.h"
#include "utils/lsyscache.h"
}

namespace {

bool is_ours(const RangeVar* name) {
  const Oid relation = RangeVarGetRelid(name, NoLock, true);
  return OidIsValid(relation) && rdmacc_relation_is_ours(relation);
}

bool is_index_of_ours(Oid index) {
  if (!OidIsValid(index) || get_rel_relkind(index) != RELKIND_INDEX) return false;
  const Oid table = IndexGetRelation(index, true);
  return OidIsValid(table) && rdmacc_relation_is_ours(table);
}

bool creates_concurrently(const Node* node) {
  if (!IsA(node, IndexStmt)) return false;
  const auto* create = reinterpret_cast<const IndexStmt*>(node);
  return create->concurrent && is_ours(create->relation);
}

bool drops_concurrently(const Node* node) {
  if (!IsA(node, DropStmt)) return false;
  const auto* drop = reinterpret_cast<const DropStmt*>(node);
  if (!drop->concurrent || drop->removeType != OBJECT_INDEX || list_length(drop->objects) != 1) {
    return false;
  }
  const RangeVar* name = makeRangeVarFromNameList(static_cast<List*>(linitial(drop->objects)));
  return is_index_of_ours(RangeVarGetRelid(name, NoLock, true));
}

bool refreshes_concurrently(const Node* node) {
  if (!IsA(node, RefreshMatViewStmt)) return false;
  const auto* refresh = reinterpret_cast<const RefreshMatViewStmt*>(node);
  return refresh->concurrent && is_ours(refresh->relation);
}

void check_add_constraint(const AlterTableStmt* statement, const AlterTableCmd* command) {
  if (command->def == nullptr || !IsA(command->def, Constraint)) return;
  const auto* constraint = reinterpret_cast<const Constraint*>(command->def);
  if (constraint->contype != CONSTR_PRIMARY || constraint->indexname == nullptr ||
      !is_ours(statement->relation)) {
    return;
  }
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot make index \"%s\" the primary key of rdmacc table \"%s\"",
                         constraint->indexname, statement->relation->relname),
                  errhint("Use ADD PRIMARY KEY with the columns.")));
}

void check_set_tablespace(const AlterTableStmt* statement) {
  const Oid index = RangeVarGetRelid(statement->relation, NoLock, true);
  if (!is_index_of_ours(index)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot move index \"%s\" of an rdmacc table to another tablespace",
                         statement->relation->relname),
                  errhint("Its entries are kept in memory; the tablespace makes no difference.")));
}

}  // namespace

PlannedStmt* rdmacc_without_concurrently(PlannedStmt* statement, bool read_only,
                                         ProcessUtilityContext context) {
  const bool creates = creates_concurrently(statement->utilityStmt);
  const bool drops = drops_concurrently(statement->utilityStmt);
  if (!creates && !drops && !refreshes_concurrently(statement->utilityStmt)) return statement;
  if (creates || drops) {
    PreventInTransactionBlock(context == PROCESS_UTILITY_TOPLEVEL,
                              creates ? "CREATE INDEX CONCURRENTLY" : "DROP INDEX CONCURRENTLY");
  }
  PlannedStmt* changed =
      read_only ? static_cast<PlannedStmt*>(copyObjectImpl(statement)) : statement;
  if (creates) {
    reinterpret_cast<IndexStmt*>(changed->utilityStmt)->concurrent = false;
  } else if (drops) {
    reinterpret_cast<DropStmt*>(changed->utilityStmt)->concurrent = false;
  } else {
    reinterpret_cast<RefreshMatViewStmt*>(changed->utilityStmt)->concurrent = false;
  }
  return changed;
}

void rdmacc_check_index_statement(const Node* statement) {
  if (!IsA(statement, AlterTableStmt)) return;
  const auto* alter = reinterpret_cast<const AlterTableStmt*>(statement);
  ListCell* cell;
  foreach (cell, alter->cmds) {
    const auto* command = static_cast<const AlterTableCmd*>(lfirst(cell));
    if (command->subtype == AT_AddConstraint) check_add_constraint(alter, command);
    if (command->subtype == AT_SetTableSpace) check_set_tablespace(alter);
  }
}
