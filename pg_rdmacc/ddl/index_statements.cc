#include "pg_rdmacc/ddl/index_statements.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {
#include "access/genam.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "commands/tablespace.h"
#include "commands/user.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
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

/* As PostgreSQL wants it: one over all rows, of columns alone. */
bool has_unique_index(Relation view) {
  ListCell* cell;
  foreach (cell, RelationGetIndexList(view)) {
    Relation index = index_open(lfirst_oid(cell), AccessShareLock);
    const bool usable = index->rd_index->indisunique && index->rd_index->indisvalid &&
                        RelationGetIndexPredicate(index) == NIL &&
                        RelationGetIndexExpressions(index) == NIL;
    index_close(index, AccessShareLock);
    if (usable) return true;
  }
  return false;
}

/* What PostgreSQL refuses with CONCURRENTLY keeps it, to be refused. */
bool refreshes_concurrently(const Node* node) {
  if (!IsA(node, RefreshMatViewStmt)) return false;
  const auto* refresh = reinterpret_cast<const RefreshMatViewStmt*>(node);
  if (!refresh->concurrent || refresh->skipData || !is_ours(refresh->relation)) return false;
  Relation view = relation_openrv(refresh->relation, AccessShareLock);
  const bool allowed = view->rd_rel->relkind == RELKIND_MATVIEW && RelationIsPopulated(view) &&
                       has_unique_index(view);
  relation_close(view, AccessShareLock);
  return allowed;
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

[[noreturn]] void refuse_to_move(const char* index) {
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("cannot move index \"%s\" of an rdmacc table to another tablespace", index),
           errhint("Its entries are kept in memory; the tablespace makes no difference.")));
}

void check_set_tablespace(const AlterTableStmt* statement) {
  const Oid index = RangeVarGetRelid(statement->relation, NoLock, true);
  if (is_index_of_ours(index)) refuse_to_move(statement->relation->relname);
}

/* ALTER INDEX ALL IN TABLESPACE: of the indexes that PostgreSQL will find. */
void check_move_all(const AlterTableMoveAllStmt* statement) {
  if (statement->objtype != OBJECT_INDEX) return;
  const Oid from = get_tablespace_oid(statement->orig_tablespacename, true);
  const List* owners = statement->roles != NIL ? roleSpecsToIds(statement->roles) : NIL;
  Relation catalog = table_open(RelationRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  HeapTuple tuple;
  while ((tuple = heap_getnext(scan, ForwardScanDirection)) != nullptr) {
    const auto* row = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    const Oid place = OidIsValid(row->reltablespace) ? row->reltablespace : MyDatabaseTableSpace;
    if (place != from || row->relkind != RELKIND_INDEX) continue;
    if (owners != NIL && !list_member_oid(owners, row->relowner)) continue;
    if (is_index_of_ours(row->oid)) refuse_to_move(NameStr(row->relname));
  }
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
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
  if (IsA(statement, AlterTableMoveAllStmt)) {
    return check_move_all(reinterpret_cast<const AlterTableMoveAllStmt*>(statement));
  }
  if (!IsA(statement, AlterTableStmt)) return;
  const auto* alter = reinterpret_cast<const AlterTableStmt*>(statement);
  ListCell* cell;
  foreach (cell, alter->cmds) {
    const auto* command = static_cast<const AlterTableCmd*>(lfirst(cell));
    if (command->subtype == AT_AddConstraint) check_add_constraint(alter, command);
    if (command->subtype == AT_SetTableSpace) check_set_tablespace(alter);
  }
}

/* ---- Which indexes there may be */

namespace {

const char* kind_of(Relation index) {
  if (index->rd_index->indisprimary) return "primary key";
  return index->rd_index->indisunique ? "unique index" : "index";
}

[[noreturn]] void refuse(Relation relation, Relation index, const char* what, const char* hint) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot create %s \"%s\" on rdmacc table \"%s\"", what,
                         RelationGetRelationName(index), RelationGetRelationName(relation)),
                  errhint("%s", hint)));
}

/* The type's default family, or the one of its bytes' order. */
bool is_known_family(Oid type, Oid family, Oid access_method) {
  if (family == TEXT_PATTERN_BTREE_FAM_OID || family == BPCHAR_PATTERN_BTREE_FAM_OID) return true;
  const Oid default_class = GetDefaultOpClass(type, access_method);
  return OidIsValid(default_class) && get_opclass_family(default_class) == family;
}

void check_column(Relation relation, Relation index, int number, const RdmaccKeyColumn* column) {
  const bool primary = index->rd_index->indisprimary;
  if (rdmacc_key_kind(column->type) == RDMACC_KEY_NONE) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("type %s cannot be part of %s of an rdmacc table",
                           format_type_be(column->type), primary ? "the primary key" : "an index"),
                    errhint("Use a data type that can be hashed.")));
  }
  if (OidIsValid(column->collation) && !get_collation_isdeterministic(column->collation)) {
    refuse(relation, index,
           psprintf("%s with a nondeterministic collation", primary ? "primary key" : "index"),
           "Use a deterministic collation for the key's columns.");
  }
  if (!is_known_family(index->rd_opcintype[number], index->rd_opfamily[number],
                       index->rd_rel->relam)) {
    refuse(relation, index, psprintf("%s with an operator class of another order", kind_of(index)),
           "Leave out the operator class.");
  }
}

}  // namespace

void rdmacc_check_index(Relation relation, Relation index) {
  const char* offered = "rdmacc tables have btree and hash indexes.";
  if (index->rd_index->indisexclusion) refuse(relation, index, "exclusion constraint", offered);
  if (index->rd_rel->relam != BTREE_AM_OID && index->rd_rel->relam != HASH_AM_OID) {
    refuse(relation, index, psprintf("%s index", get_am_name(index->rd_rel->relam)), offered);
  }
  if (index->rd_index->indisprimary && !index->rd_index->indimmediate) {
    refuse(relation, index, "deferrable primary key",
           "Leave out DEFERRABLE: an UPDATE is judged when it ends in any case.");
  }
  RdmaccKeyLayout layout = {};
  rdmacc_index_layout(relation, index, &layout);
  for (int i = 0; i < layout.column_count; i++) {
    check_column(relation, index, i, &layout.columns[i]);
  }
}
