#include "pg_rdmacc/relation/foreign_keys.h"

#include "pg_rdmacc/relation/access_method.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/trigger.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
}

namespace {

struct Kinds {
  bool ours;
  bool others;
};

void note_table(Oid relation, Kinds* kinds) {
  if (get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE) return;
  bool* kind = rdmacc_relation_is_ours(relation) ? &kinds->ours : &kinds->others;
  *kind = true;
}

/* Tables whose rows take part. The children of a table that is not partitioned do not. */
void note_tables(Oid relation, Kinds* kinds) {
  if (get_rel_relkind(relation) != RELKIND_PARTITIONED_TABLE) {
    note_table(relation, kinds);
    return;
  }
  ListCell* cell;
  foreach (cell, find_all_inheritors(relation, NoLock, nullptr)) {
    note_table(lfirst_oid(cell), kinds);
  }
}

/* Of triggers that look for the rows that refer to one. Each foreign key has one of these. */
bool follows_deletes(Oid function) {
  switch (function) {
    case F_RI_FKEY_NOACTION_DEL:
    case F_RI_FKEY_RESTRICT_DEL:
    case F_RI_FKEY_CASCADE_DEL:
    case F_RI_FKEY_SETNULL_DEL:
    case F_RI_FKEY_SETDEFAULT_DEL:
      return true;
    default:
      return false;
  }
}

Kinds find_kinds_that_refer_to(Relation relation) {
  Kinds kinds = {};
  const TriggerDesc* triggers = relation->trigdesc;
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
    const Trigger* trigger = &triggers->triggers[i];
    if (follows_deletes(trigger->tgfoid)) note_tables(trigger->tgconstrrelid, &kinds);
  }
  return kinds;
}

/* Asked for each row that a check of a foreign key locks: known until a relation changes. */
struct Known {
  Oid relation; /* InvalidOid: none */
  Kinds kinds;
};
constexpr size_t kKnownMax = 16;
Known known[kKnownMax];
uint64 changes; /* of relations */

void forget_known(Datum, Oid) {
  memset(known, 0, sizeof(known));
  changes++;
}

Kinds kinds_that_refer_to(Relation relation) {
  const Oid oid = RelationGetRelid(relation);
  Known* place = &known[oid % kKnownMax];
  if (place->relation == oid) return place->kinds;
  const uint64 before = changes;
  const Kinds kinds = find_kinds_that_refer_to(relation);
  if (changes == before) *place = {oid, kinds};
  return kinds;
}

}  // namespace

void rdmacc_foreign_keys_init(void) {
  CacheRegisterRelcacheCallback(forget_known, static_cast<Datum>(0));
}

bool rdmacc_others_refer_to(Relation relation) { return kinds_that_refer_to(relation).others; }

bool rdmacc_own_refer_to(Relation relation) { return kinds_that_refer_to(relation).ours; }

bool rdmacc_children_follow(Relation relation) {
  const TriggerDesc* triggers = relation->trigdesc;
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
    switch (triggers->triggers[i].tgfoid) {
      case F_RI_FKEY_CASCADE_UPD:
      case F_RI_FKEY_SETNULL_UPD:
      case F_RI_FKEY_SETDEFAULT_UPD:
        return true;
      default:
        break;
    }
  }
  return false;
}

bool rdmacc_mixes_tables(const FormData_pg_constraint* constraint) {
  Kinds kinds = {};
  note_tables(constraint->conrelid, &kinds);
  note_tables(constraint->confrelid, &kinds);
  return kinds.ours && kinds.others;
}
