#include "pg_rdmacc/own_tables.h"

#include "pg_rdmacc/attach.h"
#include "pg_rdmacc/relation.h"
#include "pg_rdmacc/remote_nodes.h"

extern "C" {
#include "commands/dbcommands.h"
#include "commands/defrem.h"
}

namespace {

constexpr const char* kDefaultTemplate = "template1";

const char* template_of(const CreatedbStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "template") == 0 && option->arg != nullptr) {
      return defGetString(option);
    }
  }
  return kDefaultTemplate;
}

}  // namespace

int rdmacc_own_tables(BridgeTable** own) {
  rdmacc_ensure_attached();
  bridge_start_list_tables();
  rdmacc_pump();
  if (bridge_error()->code != BRIDGE_OK) return -1;
  const BridgeTable* all = nullptr;
  const size_t count = bridge_tables(&all);
  *own = static_cast<BridgeTable*>(palloc(sizeof(BridgeTable) * (count + 1)));
  int own_count = 0;
  for (size_t i = 0; i < count; i++) {
    if (rdmacc_is_own_name(all[i].system_id)) (*own)[own_count++] = all[i];
  }
  return own_count;
}

void rdmacc_check_template(const CreatedbStmt* statement) {
  const char* name = template_of(statement);
  const Oid database = get_database_oid(name, true);
  /* template0 has nothing of anybody's. While nodes are away, no database waits for them. */
  if (!OidIsValid(database) || strcmp(name, "template0") == 0 || !rdmacc_all_nodes_serve()) return;
  BridgeTable* tables = nullptr;
  const int count = rdmacc_own_tables(&tables);
  for (int i = 0; i < count; i++) {
    if (tables[i].database != database) continue;
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("cannot make a copy of database \"%s\", which has rdmacc tables", name),
                    errdetail("Their rows are not in files."),
                    errhint("Use TEMPLATE template0, and pg_dump and pg_restore.")));
  }
}
