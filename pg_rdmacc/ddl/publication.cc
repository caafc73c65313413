
#include "pg_rdmacc/ddl/utility.h"
#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
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

void check_table(const PublicationTable* published) {
  const Oid table = RangeVarGetRelid(published->relation, NoLock, true);
  if (!OidIsValid(table) || !rdmacc_relation_is_ours(table)) return;
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("cannot add rdmacc table \"%s\" to a publication", published->relation->relname),
           errdetail("%s", kReason)));
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
