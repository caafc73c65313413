#include "pg_rdmacc/workload/native_shape.h"

#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "utils/relcache.h"
}

namespace {

[[noreturn]] void refuse(const RdmaccNativeShape* shape, Relation relation, const char* why) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("table \"%s\" is not one that the engine's own path takes",
                         RelationGetRelationName(relation)),
                  errdetail("The table %s.", why),
                  errhint("Call the function of the same name that ends in _sql, or make the table "
                          "by rdmacc.%s().",
                          shape->procedure)));
}

/* What would have to run, or hold, for each row. */
const char* not_plain(Relation relation) {
  const FormData_pg_class* form = relation->rd_rel;
  if (form->relkind != RELKIND_RELATION || !rdmacc_is_ours(relation)) return "is no rdmacc table";
  if (form->relhastriggers) return "has triggers or foreign keys";
  if (form->relhasrules) return "has rules";
  if (form->relrowsecurity) return "has row security";
  if (form->relispartition || form->relhassubclass) return "is part of an inheritance tree";
  const TupleConstr* constraints = RelationGetDescr(relation)->constr;
  if (constraints == nullptr) return nullptr;
  if (constraints->num_check > 0) return "has check constraints";
  return constraints->has_generated_stored ? "has generated columns" : nullptr;
}

/* Of no attribute that is written, nor by a condition on one. */
bool may_be_unique(Relation index, const RdmaccNativeShape* shape) {
  return shape->unique_attribute != 0 && index->rd_index->indnkeyatts == 1 &&
         index->rd_index->indkey.values[0] == shape->unique_attribute &&
         heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr);
}

/* Uniqueness of a written row is asked for by the executor. */
bool has_other_unique_index(Relation relation, const RdmaccNativeShape* shape) {
  bool found = false;
  List* indexes = RelationGetIndexList(relation);
  ListCell* cell;
  foreach (cell, indexes) {
    if (lfirst_oid(cell) == relation->rd_pkindex) continue;
    Relation index = RelationIdGetRelation(lfirst_oid(cell));
    if (!RelationIsValid(index)) continue;
    found |= index->rd_index->indisunique && !may_be_unique(index, shape);
    RelationClose(index);
  }
  list_free(indexes);
  return found;
}

bool is_column(const FormData_pg_attribute* attribute, const RdmaccNativeColumn* column,
               int number) {
  char name[NAMEDATALEN];
  strlcpy(name, column->name, sizeof(name));
  if (column->count > 1) pg_sprintf(name + strlen(name), "%d", number);
  return !attribute->attisdropped && attribute->atttypid == column->type &&
         strcmp(NameStr(attribute->attname), name) == 0;
}

bool has_columns(Relation relation, const RdmaccNativeShape* shape) {
  TupleDesc descriptor = RelationGetDescr(relation);
  int at = 0;
  for (int i = 0; i < shape->column_count; i++) {
    const RdmaccNativeColumn* column = &shape->columns[i];
    for (int number = 1; number <= column->count; number++, at++) {
      if (at >= descriptor->natts || !is_column(TupleDescAttr(descriptor, at), column, number)) {
        return false;
      }
    }
  }
  CHECK(at <= RDMACC_NATIVE_ATTRIBUTES_MAX);
  return at == descriptor->natts;
}

bool has_key(const RdmaccKeyLayout* layout, int key_columns) {
  if (layout->column_count != key_columns) return false;
  if ((layout->number == 0) != (key_columns == 0)) return false;
  for (int i = 0; i < key_columns; i++) {
    if (layout->columns[i].attno != i + 1) return false;
  }
  return true;
}

}  // namespace

void rdmacc_native_check_shape(const RdmaccNativeShape* shape, Relation relation) {
  const char* why = not_plain(relation);
  if (why != nullptr) refuse(shape, relation, why);
  if (!has_columns(relation, shape)) refuse(shape, relation, "has other columns");
  RdmaccKeyLayout layout;
  rdmacc_catalog_layout(relation, &layout);
  if (!has_key(&layout, shape->key_columns)) refuse(shape, relation, "has another primary key");
  if (has_other_unique_index(relation, shape)) {
    refuse(shape, relation, "has a unique index beside its primary key");
  }
}
