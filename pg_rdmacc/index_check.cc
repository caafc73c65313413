#include "pg_rdmacc/index_check.h"

#include "pg_rdmacc/key_codec.h"
#include "pg_rdmacc/key_layout.h"

extern "C" {
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
}

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
