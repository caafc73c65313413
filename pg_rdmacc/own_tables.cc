#include "pg_rdmacc/own_tables.h"

#include "pg_rdmacc/attach.h"
#include "pg_rdmacc/remote_nodes.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/xlog.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
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

/* Server in the upper half, so that it can be told whose a table is. */
uint64 rdmacc_system_name(uint64 variant) {
  const uint64 system = GetSystemIdentifier();
  const uint32 server =
      hash_combine(static_cast<uint32>(system), static_cast<uint32>(system >> 32));
  const uint32 folded = static_cast<uint32>(variant) ^ static_cast<uint32>(variant >> 32);
  return static_cast<uint64>(server) << 32 | (variant != 0 && folded == 0 ? 1 : folded);
}

bool rdmacc_is_own_name(uint64 system_name) {
  return system_name >> 32 == rdmacc_system_name(0) >> 32;
}

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
