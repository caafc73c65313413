#include "pg_rdmacc/ddl/key_types.h"
#include "pg_rdmacc/ddl/table_files.h"
#include "pg_rdmacc/ddl/utility.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/foreign_keys.h"
#include "pg_rdmacc/relation/table_options.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace {

object_access_hook_type previous_hook;

/* The table of a btree, and whether it is the table's primary key; InvalidOid for other indexes. */
Oid table_of_index(Oid index, bool* primary) {
  HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const auto* form = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
  const Oid table = form->indrelid;
  *primary = form->indisprimary;
  ReleaseSysCache(tuple);
  return table;
}

void dropped_index(Oid index) {
  bool primary = false;
  const Oid table = table_of_index(index, &primary);
  if (!OidIsValid(table) || !rdmacc_relation_is_ours(table) || IsBinaryUpgrade) return;
  if (!primary) {
    rdmacc_enter(); /* so that the end of the transaction looks at the files that go */
    return;
  }
  rdmacc_keep_layout(table);
}

void dropped_relation(Oid relid) {
  switch (get_rel_relkind(relid)) {
    case RELKIND_RELATION:
    case RELKIND_MATVIEW:
      if (rdmacc_relation_is_ours(relid)) {
        Relation relation = table_open(relid, NoLock);
        rdmacc_drop_file(relation);
        table_close(relation, NoLock);
      }
      break;
    case RELKIND_INDEX:
      dropped_index(relid);
      break;
    default:
      break;
  }
}

/* An index that exists may become a constraint without being built again. */
[[noreturn]] void refuse_deferrable_key(const FormData_pg_constraint* form) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot create deferrable primary key \"%s\" on rdmacc table \"%s\"",
                         NameStr(form->conname), get_rel_name(form->conrelid)),
                  errhint("Leave out DEFERRABLE: an UPDATE is judged when it ends in any case.")));
}

/* Rows that are there are checked after locks that let earlier writers end. What another
 * transaction has not written yet needs no current reads: an rdmacc table that this one has made,
 * and an empty table of another kind. Partitions have constraints of their own. */
void note_foreign_key(const FormData_pg_constraint* form) {
  if (form->contype != CONSTRAINT_FOREIGN || !form->convalidated) return;
  if (get_rel_relkind(form->conrelid) != RELKIND_RELATION || !rdmacc_mixes_tables(form)) return;
  Relation child = table_open(form->conrelid, NoLock);
  const bool has_rows = rdmacc_is_ours(child) ? child->rd_createSubid == InvalidSubTransactionId
                                              : RelationGetNumberOfBlocks(child) > 0;
  table_close(child, NoLock);
  if (has_rows) rdmacc_need_current_reads();
}

void created_constraint(const FormData_pg_constraint* form) {
  if (form->contype != CONSTRAINT_PRIMARY || !rdmacc_relation_is_ours(form->conrelid)) return;
  if (form->condeferrable) refuse_deferrable_key(form);
  /* The catalog shows the key from the next command on, the rows have it once it is built: in
   * between ALTER TABLE may have read them for a rewrite. */
  rdmacc_keep_layout(form->conrelid);
}

/* The constraint as it was just made, or changed: only SnapshotSelf sees it so. */
void look_at_constraint(Oid constraint, bool created) {
  ScanKeyData key;
  Relation catalog = table_open(ConstraintRelationId, AccessShareLock);
  ScanKeyInit(&key, Anum_pg_constraint_oid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(constraint));
  SysScanDesc scan = systable_beginscan(catalog, ConstraintOidIndexId, true, SnapshotSelf, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    const auto* form = reinterpret_cast<Form_pg_constraint>(GETSTRUCT(tuple));
    note_foreign_key(form);
    if (created) created_constraint(form);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
}

/* A table that the relcache knows, and the catalog from the next command on. Its indexes come
 * later, and are made as its options say. */
void created_relation(Oid relid) {
  Relation relation = RelationIdGetRelation(relid);
  if (!RelationIsValid(relation)) return;
  const bool ours = relation->rd_rel->relkind == RELKIND_RELATION &&
                    relation->rd_rel->relam == rdmacc_access_method();
  RelationClose(relation);
  if (ours && !IsBinaryUpgrade) rdmacc_label_new_table(relid);
}

void object_access(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void* arg) {
  if (previous_hook != nullptr) previous_hook(access, class_id, object, sub_id, arg);
  if (access == OAT_POST_CREATE || access == OAT_DROP || access == OAT_POST_ALTER) {
    rdmacc_note_catalog_write();
  }
  const bool exports = access == OAT_FUNCTION_EXECUTE && object == F_PG_EXPORT_SNAPSHOT;
  if (access == OAT_FUNCTION_EXECUTE && !exports) return;
  if (!OidIsValid(rdmacc_access_method())) return;
  if (exports) {
    rdmacc_snapshot_is_exported();
  } else if ((access == OAT_POST_CREATE || access == OAT_DROP) && class_id == RelationRelationId &&
             sub_id > 0) {
    rdmacc_refuse_change_of_key_type(object);
  } else if (access == OAT_DROP && class_id == RelationRelationId && sub_id == 0) {
    dropped_relation(object);
  } else if ((access == OAT_POST_CREATE || access == OAT_POST_ALTER) &&
             class_id == ConstraintRelationId) {
    look_at_constraint(object, access == OAT_POST_CREATE);
  } else if (access == OAT_POST_CREATE && class_id == RelationRelationId && sub_id == 0) {
    /* A rewrite's table is internal, and has the options of the one that is rewritten. */
    if (!static_cast<const ObjectAccessPostCreate*>(arg)->is_internal) created_relation(object);
  }
}

}  // namespace

void rdmacc_object_access_init(void) {
  previous_hook = object_access_hook;
  object_access_hook = object_access;
}
