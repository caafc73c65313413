#include "pg_rdmacc/ddl/key_types.h"

#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace {

bool is_key_of(Oid index, AttrNumber column) {
  Relation relation = index_open(index, AccessShareLock);
  bool found = false;
  for (int i = 0; i < relation->rd_index->indnkeyatts && !found; i++) {
    found = relation->rd_index->indkey.values[i] == column;
  }
  index_close(relation, AccessShareLock);
  return found;
}

bool is_in_a_key(Oid table, AttrNumber column) {
  Relation relation = table_open(table, AccessShareLock);
  bool found = false;
  ListCell* cell;
  foreach (cell, RelationGetIndexList(relation)) {
    found = found || is_key_of(lfirst_oid(cell), column);
  }
  table_close(relation, AccessShareLock);
  return found;
}

/* What may hold values of a type: other types, and columns of relations. */
class Users {
 public:
  /* The first rdmacc table that has values of the type in a key; InvalidOid: none. */
  Oid find_key(Oid type) {
    if (list_member_oid(seen_, type)) return InvalidOid;
    seen_ = lappend_oid(seen_, type);
    check_stack_depth();
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(TypeRelationId));
    ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(type));
    Relation catalog = table_open(DependRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, DependReferenceIndexId, true, nullptr, 2, keys);
    Oid found = InvalidOid;
    while (!OidIsValid(found)) {
      HeapTuple tuple = systable_getnext(scan);
      if (!HeapTupleIsValid(tuple)) break;
      found = find_key_of(reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple)));
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return found;
  }

 private:
  Oid find_key_of(const FormData_pg_depend* user) {
    if (user->classid == TypeRelationId) return find_key(user->objid);
    if (user->classid != RelationRelationId || user->objsubid == 0) return InvalidOid;
    const Oid relation = user->objid;
    const char kind = get_rel_relkind(relation);
    const bool has_keys = kind == RELKIND_RELATION || kind == RELKIND_MATVIEW;
    if (has_keys && rdmacc_relation_is_ours(relation) &&
        is_in_a_key(relation, static_cast<AttrNumber>(user->objsubid))) {
      return relation;
    }
    const Oid row_type = get_rel_type_id(relation);
    return OidIsValid(row_type) ? find_key(row_type) : InvalidOid;
  }

  List* seen_ = NIL;
};

}  // namespace

void rdmacc_refuse_change_of_key_type(Oid relation) {
  const Oid row_type = get_rel_type_id(relation);
  if (!OidIsValid(row_type) || IsBinaryUpgrade) return;
  const Oid table = Users().find_key(row_type);
  if (!OidIsValid(table)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot change the attributes of \"%s\": a key of rdmacc table \"%s\" has"
                         " values of this type",
                         get_rel_name(relation), get_rel_name(table)),
                  errhint("Drop the index, or the primary key, and make it again afterwards.")));
}
