#include "pg_rdmacc/ddl/foreign_key.h"

#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace {

/* A table of each kind that takes part; InvalidOid for none. */
struct Sides {
  Oid ours;
  Oid other;
};

void note_table(Oid relation, Sides* sides) {
  if (get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE) return;
  Oid* side = rdmacc_relation_is_ours(relation) ? &sides->ours : &sides->other;
  *side = relation;
}

/* Tables whose rows take part. The children of a table that is not partitioned do not. */
void note_tables(Oid relation, Sides* sides) {
  if (get_rel_relkind(relation) != RELKIND_PARTITIONED_TABLE) {
    note_table(relation, sides);
    return;
  }
  ListCell* cell;
  foreach (cell, find_all_inheritors(relation, NoLock, nullptr)) {
    note_table(lfirst_oid(cell), sides);
  }
}

void check_constraints(Relation catalog, Oid index, AttrNumber column, Oid relation) {
  ScanKeyData key;
  ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
  SysScanDesc scan = systable_beginscan(catalog, index, OidIsValid(index), nullptr, 1, &key);
  for (HeapTuple tuple = systable_getnext(scan); HeapTupleIsValid(tuple);
       tuple = systable_getnext(scan)) {
    const auto* form = reinterpret_cast<Form_pg_constraint>(GETSTRUCT(tuple));
    if (form->contype == CONSTRAINT_FOREIGN) rdmacc_check_foreign_key(form);
  }
  systable_endscan(scan);
}

}  // namespace

void rdmacc_check_foreign_key(const FormData_pg_constraint* constraint) {
  Sides sides = {InvalidOid, InvalidOid};
  note_tables(constraint->conrelid, &sides);
  note_tables(constraint->confrelid, &sides);
  if (!OidIsValid(sides.ours) || !OidIsValid(sides.other)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("foreign keys between rdmacc tables and other tables are not supported"),
                  errdetail("Of foreign key \"%s\", \"%s\" is an rdmacc table and \"%s\" is not.",
                            NameStr(constraint->conname), get_rel_name(sides.ours),
                            get_rel_name(sides.other)),
                  errhint("Use one access method for both tables, or leave out the constraint.")));
}

void rdmacc_check_foreign_keys_of(Oid relation) {
  Relation catalog = table_open(ConstraintRelationId, AccessShareLock);
  check_constraints(catalog, ConstraintRelidTypidNameIndexId, Anum_pg_constraint_conrelid,
                    relation);
  /* There is no index by the referenced table. */
  check_constraints(catalog, InvalidOid, Anum_pg_constraint_confrelid, relation);
  table_close(catalog, AccessShareLock);
}
