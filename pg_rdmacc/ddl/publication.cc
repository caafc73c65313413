
#include "pg_rdmacc/ddl/utility.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "utils/lsyscache.h"
}

namespace {

constexpr const char* kReason = "Changes of its rows are not in the write-ahead log.";

/* Whether a schema, or any (InvalidOid), has a table of ours. */
bool any_table_of_ours(Oid schema) {
  const Oid access_method = rdmacc_access_method();
  Relation catalog = table_open(RelationRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
  bool found = false;
  while (HeapTuple tuple = systable_getnext(scan)) {
    const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
    found = form->relam == access_method && form->relkind == RELKIND_RELATION &&
            (!OidIsValid(schema) || form->relnamespace == schema);
    if (found) break;
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

void warn_if_any(Oid schema) {
  if (!any_table_of_ours(schema)) return;
  ereport(WARNING, (errmsg("rdmacc tables are not published"), errdetail("%s", kReason)));
}

[[noreturn]] void refuse(Oid table) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot add rdmacc table \"%s\" to a publication", get_rel_name(table)),
                  errdetail("%s", kReason)));
}

/* With its partitions, and children unless it is ONLY. */
void check_table(const PublicationTable* published) {
  const Oid table = RangeVarGetRelid(published->relation, NoLock, true);
  if (!OidIsValid(table)) return;
  const bool alone =
      !published->relation->inh && get_rel_relkind(table) != RELKIND_PARTITIONED_TABLE;
  ListCell* cell;
  foreach (cell, alone ? list_make1_oid(table) : find_all_inheritors(table, NoLock, nullptr)) {
    if (rdmacc_relation_is_ours(lfirst_oid(cell))) refuse(lfirst_oid(cell));
  }
}

/* By name; as a partition it is with its ancestors. */
bool is_published(Oid table) {
  if (GetRelationPublications(table) != NIL) return true;
  if (!get_rel_relispartition(table)) return false;
  ListCell* cell;
  foreach (cell, get_partition_ancestors(table)) {
    if (GetRelationPublications(lfirst_oid(cell)) != NIL) return true;
  }
  return false;
}

/* That was just made, attached, or given its access method. */
void check_changed_table(const RangeVar* name) {
  const Oid table = RangeVarGetRelid(name, NoLock, true);
  if (!OidIsValid(table)) return;
  ListCell* cell;
  foreach (cell, find_all_inheritors(table, NoLock, nullptr)) {
    const Oid each = lfirst_oid(cell);
    if (rdmacc_relation_is_ours(each) && is_published(each)) refuse(each);
  }
}

void check_objects(const List* objects) {
  ListCell* cell;
  foreach (cell, objects) {
    const auto* object = static_cast<const PublicationObjSpec*>(lfirst(cell));
    if (object->pubobjtype == PUBLICATIONOBJ_TABLE && object->pubtable != nullptr) {
      check_table(object->pubtable);
    } else if (object->pubobjtype == PUBLICATIONOBJ_TABLES_IN_SCHEMA) {
      const Oid schema = get_namespace_oid(object->name, true);
      if (OidIsValid(schema)) warn_if_any(schema);
    } else if (object->pubobjtype == PUBLICATIONOBJ_TABLES_IN_CUR_SCHEMA) {
      const List* path = fetch_search_path(false);
      if (path != NIL) warn_if_any(linitial_oid(path));
    }
  }
}

}  // namespace

void rdmacc_check_publication(const Node* statement) {
  if (IsA(statement, CreatePublicationStmt)) {
    const auto* create = reinterpret_cast<const CreatePublicationStmt*>(statement);
    if (create->for_all_tables) warn_if_any(InvalidOid);
    check_objects(create->pubobjects);
    return;
  }
  const auto* alter = reinterpret_cast<const AlterPublicationStmt*>(statement);
  if (alter->action != AP_DropObjects) check_objects(alter->pubobjects);
}

void rdmacc_check_if_published(const Node* statement) {
  if (IsA(statement, CreateStmt)) {
    const auto* create = reinterpret_cast<const CreateStmt*>(statement);
    if (create->partbound == nullptr) return;
    CommandCounterIncrement();
    check_changed_table(create->relation);
    return;
  }
  const auto* alter = reinterpret_cast<const AlterTableStmt*>(statement);
  ListCell* cell;
  foreach (cell, alter->cmds) {
    const auto* command = static_cast<const AlterTableCmd*>(lfirst(cell));
    if (command->subtype == AT_SetAccessMethod) {
      CommandCounterIncrement();
      check_changed_table(alter->relation);
    } else if (command->subtype == AT_AttachPartition) {
      CommandCounterIncrement();
      check_changed_table(reinterpret_cast<const PartitionCmd*>(command->def)->name);
    }
  }
}
