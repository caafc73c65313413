#include "pg_rdmacc/ddl/key_types.h"

#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace {

/* The types whose values have values of one type in them: arrays, domains, ranges, composites and
 * rows of tables. */
class TypesOver {
 public:
  explicit TypesOver(Oid type) { add(type); }

  const List* all() const { return types_; }
  /* Something else than the type's own array depends on one: a column, a function, an index. */
  bool used() const { return used_; }

 private:
  void add(Oid type) {
    if (!OidIsValid(type) || list_member_oid(types_, type)) return;
    types_ = lappend_oid(types_, type);
    check_stack_depth();
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(TypeRelationId));
    ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(type));
    Relation catalog = table_open(DependRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, DependReferenceIndexId, true, nullptr, 2, keys);
    for (HeapTuple tuple = systable_getnext(scan); HeapTupleIsValid(tuple);
         tuple = systable_getnext(scan)) {
      add_dependent(reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple)));
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
  }
  void add_dependent(const FormData_pg_depend* dependent) {
    if (dependent->classid == TypeRelationId) return add(dependent->objid);
    used_ = true;
    if (dependent->classid == RelationRelationId) add(get_rel_type_id(dependent->objid));
  }

  List* types_ = NIL;
  bool used_ = false;
};

/* The table if it is one of ours, and the column part of an index's key; InvalidOid otherwise. */
Oid table_of_key(const FormData_pg_attribute* column) {
  if (column->attnum <= 0 || get_rel_relkind(column->attrelid) != RELKIND_INDEX) return InvalidOid;
  const Oid table = IndexGetRelation(column->attrelid, true);
  if (!OidIsValid(table) || !rdmacc_relation_is_ours(table)) return InvalidOid;
  Relation index = index_open(column->attrelid, AccessShareLock);
  const bool in_key = column->attnum <= index->rd_index->indnkeyatts;
  index_close(index, AccessShareLock);
  return in_key ? table : InvalidOid;
}

/* An index has the types of its columns, expressions among them; no catalog finds them by these. */
Oid table_with_key_of(const List* types) {
  Relation catalog = table_open(AttributeRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
  Oid found = InvalidOid;
  while (!OidIsValid(found)) {
    HeapTuple tuple = systable_getnext(scan);
    if (!HeapTupleIsValid(tuple)) break;
    const auto* column = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple));
    if (list_member_oid(types, column->atttypid)) found = table_of_key(column);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

}  // namespace

void rdmacc_refuse_change_of_key_type(Oid relation) {
  const Oid row_type = get_rel_type_id(relation);
  if (!OidIsValid(row_type) || IsBinaryUpgrade) return;
  const TypesOver types(row_type);
  const Oid table = types.used() ? table_with_key_of(types.all()) : InvalidOid;
  if (!OidIsValid(table)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot change the attributes of \"%s\": a key of rdmacc table \"%s\" has"
                         " values of this type",
                         get_rel_name(relation), get_rel_name(table)),
                  errhint("Drop the index, or the primary key, and make it again afterwards.")));
}
