/* What is checked of the settings when the server starts. */
#include "pg_rdmacc/server/guc.h"

extern "C" {
#include "utils/guc.h"
#include "utils/guc_tables.h"
}

namespace {

/* Settings in postgresql.conf are strings until the library defines them, and PostgreSQL only
 * warns when one is refused then. A server must not run with another number of nodes or weaker
 * promises than asked for, so a refused one ends the start as it does for built-in settings. */
constexpr const char* kSettings[] = {"rdmacc.protocol",        "rdmacc.stages",
                                     "rdmacc.spin_us",         "rdmacc.gate_timeout",
                                     "rdmacc.nodes",           "rdmacc.node_memory",
                                     "rdmacc.replicas",        "rdmacc.max_write_set",
                                     "rdmacc.durability",      "rdmacc.max_workers",
                                     "rdmacc.huge_pages",      "rdmacc.node_program",
                                     "rdmacc.lock_mode",       "rdmacc.node_threads",
                                     "rdmacc.fabric",          "rdmacc.cluster",
                                     "rdmacc.cluster_name",    "rdmacc.cluster_secret_file",
                                     "rdmacc.verbs_device",    "rdmacc.verbs_port",
                                     "rdmacc.verbs_gid_index", "rdmacc.checkpoint_timeout",
                                     "rdmacc.preset"};
constexpr size_t kSettingsCount = sizeof(kSettings) / sizeof(kSettings[0]);
bool configured[kSettingsCount];

bool has_default_source(const char* name) {
  config_generic** all = get_guc_variables();
  for (int i = 0; i < GetNumConfigOptions(); ++i) {
    if (strcmp(all[i]->name, name) == 0) return all[i]->source == PGC_S_DEFAULT;
  }
  return true;
}

/* The list of nodes says how many there are. */
void take_number_of_nodes(void) {
  if (rdmacc_cluster[0] == '\0') return;
  const int count = bridge_count_nodes(rdmacc_cluster);
  CHECK(count > 0); /* check_cluster() */
  if (!has_default_source("rdmacc.nodes") && rdmacc_nodes != count) {
    ereport(FATAL,
            (errcode(ERRCODE_CONFIG_FILE_ERROR),
             errmsg("rdmacc.nodes is %d, but rdmacc.cluster names %d nodes", rdmacc_nodes, count),
             errhint("Leave rdmacc.nodes out: the list says how many there are.")));
  }
  char text[16];
  snprintf(text, sizeof(text), "%d", count);
  SetConfigOption("rdmacc.nodes", text, PGC_POSTMASTER, PGC_S_OVERRIDE);
}

/* Said by the configuration: the default is what can be had. */
void refuse_disk_of_others(void) {
  if (rdmacc_cluster[0] == '\0' || rdmacc_durability != RDMACC_DURABILITY_DISK ||
      has_default_source("rdmacc.durability")) {
    return;
  }
  ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                  errmsg("rdmacc.durability cannot be disk with nodes that others run"),
                  errdetail("Nodes that rdmacc.cluster names keep rows in memory."),
                  errhint("Set rdmacc.durability = memory, or leave it out.")));
}

}  // namespace

void rdmacc_guc_note_configured(void) {
  for (size_t i = 0; i < kSettingsCount; ++i) {
    configured[i] = GetConfigOption(kSettings[i], true, false) != nullptr;
  }
}

void rdmacc_guc_refuse_invalid(void) {
  for (size_t i = 0; i < kSettingsCount; ++i) {
    if (!configured[i] || !has_default_source(kSettings[i])) continue;
    ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                    errmsg("invalid value for parameter \"%s\" in the server's configuration",
                           kSettings[i]),
                    errdetail("The warning above says why.")));
  }
}

void rdmacc_guc_check_at_start(void) {
  take_number_of_nodes();
  refuse_disk_of_others();
  if (rdmacc_effective_replicas() >= rdmacc_nodes) {
    ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                    errmsg("rdmacc.replicas (%d) must be less than rdmacc.nodes (%d)",
                           rdmacc_replicas, rdmacc_nodes),
                    errhint("A backup is kept on another node than the partition itself.")));
  }
}

int rdmacc_effective_replicas(void) {
  if (has_default_source("rdmacc.replicas")) return Min(rdmacc_replicas, rdmacc_nodes - 1);
  return rdmacc_replicas;
}
