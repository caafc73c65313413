#include "pg_rdmacc/server/guc.h"

extern "C" {
#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
}

bool rdmacc_mixed_transactions = true;
bool rdmacc_ordered_keys = true;
bool rdmacc_exclusive_loads = true;
bool rdmacc_exclusive_deletes = true;
int rdmacc_debug_stop_at = RDMACC_STOP_NOWHERE;
int rdmacc_auto_retry = 20;
int rdmacc_kept_executors = 100;
int rdmacc_replay_limit = 20;
int rdmacc_replay_statements = 1000;
int rdmacc_replay_memory_kb = 1024;
int rdmacc_nodes = 2;
int rdmacc_node_threads = 1;
int rdmacc_node_memory_mb = 1024;
int rdmacc_replicas = 1;
int rdmacc_durability = RDMACC_DURABILITY_DISK;
int rdmacc_checkpoint_timeout_s = 300;
int rdmacc_max_workers = -1;
int rdmacc_spin_us = 50;
int rdmacc_gate_timeout_ms = 10000;
int rdmacc_max_write_set_mb = 256;
char* rdmacc_node_program = nullptr;
int rdmacc_huge_pages = 1;
char* rdmacc_fabric = nullptr;
char* rdmacc_verbs_device = nullptr;
int rdmacc_verbs_port = 0;
int rdmacc_verbs_gid_index = -1;
char* rdmacc_cluster = nullptr;
char* rdmacc_cluster_name_setting = nullptr;
char* rdmacc_cluster_secret_file = nullptr;

namespace {

constexpr int kWorkersMax = 60000;        /* worker ids have 16 bits */
constexpr int kRemoteWorkersDefault = 64; /* as in a config file that does not say */
constexpr int kNodeMemoryMbMax = 1 << 24;

const config_enum_entry stop_entries[] = {{"nowhere", RDMACC_STOP_NOWHERE, false},
                                          {"prepared", RDMACC_STOP_PREPARED, false},
                                          {"recorded", RDMACC_STOP_RECORDED, false},
                                          {"installed", RDMACC_STOP_INSTALLED, false},
                                          {nullptr, 0, false}};

constexpr config_enum_entry kDurabilityEntries[] = {{"memory", RDMACC_DURABILITY_MEMORY, false},
                                                    {"disk", RDMACC_DURABILITY_DISK, false},
                                                    {nullptr, 0, false}};

constexpr config_enum_entry kHugePagesEntries[] = {
    {"off", 0, false}, {"try", 1, false}, {nullptr, 0, false}};

bool check_max_workers(int* newval, void**, GucSource) {
  if (*newval != 0) return true;
  GUC_check_errdetail(
      "At least one worker slot is needed; -1 means max_connections and other "
      "server processes + 16.");
  return false;
}

bool check_fabric(char** newval, void**, GucSource) {
  if (bridge_fabric_available(*newval)) return true;
  GUC_check_errhint("Available values: %s.", bridge_available_fabrics());
  return false;
}

bool check_cluster(char** newval, void**, GucSource) {
  if (**newval == '\0') return true;
  const int count = bridge_count_nodes(*newval);
  if (count >= 1 && count <= RDMACC_NODES_MAX) return true;
  if (count < 0) {
    GUC_check_errdetail("%s.", bridge_error()->message);
  } else {
    GUC_check_errdetail("It names %d nodes; %d are the most.", count, RDMACC_NODES_MAX);
  }
  GUC_check_errhint("Name every node as host:port, by node number, with commas between them.");
  return false;
}

void define_two_phase(void) {
  DefineCustomBoolVariable("rdmacc.mixed_transactions",
                           "Lets one transaction write rows of rdmacc tables and of other tables.",
                           nullptr, &rdmacc_mixed_transactions, true, PGC_USERSET, 0, nullptr,
                           nullptr, nullptr);
  DefineCustomBoolVariable("rdmacc.ordered_keys",
                           "Primary keys of tables that are made find ranges and give their order.",
                           "As the table's option rdmacc.ordered_key, which says otherwise.",
                           &rdmacc_ordered_keys, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable(
      "rdmacc.exclusive_loads",
      "COPY, and INSERT of a query's rows, have an empty table to themselves if no other session "
      "uses it, and are faster then.",
      nullptr, &rdmacc_exclusive_loads, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("rdmacc.exclusive_deletes",
                           "DELETE of all rows has its table to itself if no other session uses "
                           "it, and takes no longer than to count them.",
                           nullptr, &rdmacc_exclusive_deletes, true, PGC_USERSET, 0, nullptr,
                           nullptr, nullptr);
  DefineCustomEnumVariable("rdmacc.debug_stop_at",
                           "Where a committing session stands still for a minute.",
                           "For tests of crashes between the two phases of a commit.",
                           &rdmacc_debug_stop_at, RDMACC_STOP_NOWHERE, stop_entries, PGC_SUSET,
                           GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, nullptr, nullptr, nullptr);
}

void define_session_settings(void) {
  rdmacc_guc_define_sampled();
  define_two_phase();
  DefineCustomIntVariable(
      "rdmacc.spin_us", "How long a session polls before it sleeps in a wait for the nodes.",
      nullptr, &rdmacc_spin_us, 50, 0, 1000000, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "rdmacc.gate_timeout", "How long a transaction waits for another protocol's to end.",
      "Beyond it the transaction fails with lock_not_available.", &rdmacc_gate_timeout_ms, 10000, 1,
      INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "rdmacc.auto_retry",
      "How often a statement that loses against other transactions is repeated.",
      "Statements outside of transaction blocks, as long as no row has gone to the client. 0: "
      "never.",
      &rdmacc_auto_retry, 20, 0, 10000, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "rdmacc.replay_limit",
      "How often a transaction block that loses against other transactions is run again.",
      "By the server, as long as its statements return what they have returned before. 0: never.",
      &rdmacc_replay_limit, 20, 0, 10000, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.replay_statements",
                          "Of how many statements a block may be that is run again.", nullptr,
                          &rdmacc_replay_statements, 1000, 1, INT_MAX, PGC_USERSET, 0, nullptr,
                          nullptr, nullptr);
  DefineCustomIntVariable(
      "rdmacc.replay_memory", "Memory for the statements of a block that may be run again.",
      "And for what the client has sent for COPY FROM STDIN.", &rdmacc_replay_memory_kb, 1024, 8,
      MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "rdmacc.kept_executors",
      "Of how many prepared statements a session keeps what the executor has made of their plans.",
      "0: it is made for each execution.", &rdmacc_kept_executors, 100, 0, 10000, PGC_USERSET, 0,
      nullptr, nullptr, nullptr);
  /* Fixed when the session attaches to the nodes, so it cannot change within the session. */
  DefineCustomIntVariable("rdmacc.max_write_set", "Most memory for the writes of a transaction.",
                          nullptr, &rdmacc_max_write_set_mb, 256, 1, MAX_KILOBYTES / 1024,
                          PGC_SU_BACKEND, GUC_UNIT_MB, nullptr, nullptr, nullptr);
}

void define_server_settings(void) {
  DefineCustomIntVariable("rdmacc.nodes", "Number of nodes that the server starts.", nullptr,
                          &rdmacc_nodes, 2, 1, RDMACC_NODES_MAX, PGC_POSTMASTER, 0, nullptr,
                          nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.node_threads", "Threads of each node.",
                          "Requests of stages that are carried out by rpc are spread over them.",
                          &rdmacc_node_threads, 1, 1, RDMACC_NODE_THREADS_MAX, PGC_POSTMASTER, 0,
                          nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.node_memory", "Memory that each node may use for rows.",
                          "Reserved whole, taken from the system as needed.",
                          &rdmacc_node_memory_mb, 1024, 64, kNodeMemoryMbMax, PGC_POSTMASTER,
                          GUC_UNIT_MB, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.replicas", "Backups of each partition's log.",
                          "At most rdmacc.nodes - 1.", &rdmacc_replicas, 1, 0, RDMACC_NODES_MAX - 1,
                          PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.max_workers", "Sessions that can use rdmacc tables at a time.",
                          "-1 means all possible server processes + 16.", &rdmacc_max_workers, -1,
                          -1, kWorkersMax, PGC_POSTMASTER, 0, check_max_workers, nullptr, nullptr);
  DefineCustomEnumVariable("rdmacc.durability", "Where committed rows are kept.",
                           "disk: in the server's WAL, and in checkpoints of its own.",
                           &rdmacc_durability, RDMACC_DURABILITY_DISK, kDurabilityEntries,
                           PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.checkpoint_timeout",
                          "Longest time between two checkpoints of the rows of rdmacc tables.",
                          "Each checkpoint of the server makes one, too.",
                          &rdmacc_checkpoint_timeout_s, 300, 5, 86400, PGC_SIGHUP, GUC_UNIT_S,
                          nullptr, nullptr, nullptr);
  DefineCustomEnumVariable("rdmacc.huge_pages", "Use of huge pages for the nodes' memory.", nullptr,
                           &rdmacc_huge_pages, 1, kHugePagesEntries, PGC_POSTMASTER, 0, nullptr,
                           nullptr, nullptr);
  DefineCustomStringVariable("rdmacc.node_program", "Path of the rdmacc_node program.",
                             "Empty: rdmacc_node beside the server's programs or libraries.",
                             &rdmacc_node_program, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, nullptr,
                             nullptr, nullptr);
}

void define_cluster_settings(void) {
  DefineCustomStringVariable("rdmacc.fabric", "Over what sessions and nodes talk to each other.",
                             "shm is for nodes of the same host only.", &rdmacc_fabric, "shm",
                             PGC_POSTMASTER, 0, check_fabric, nullptr, nullptr);
  DefineCustomStringVariable(
      "rdmacc.verbs_device", "RDMA devices of rdmacc.fabric = verbs, by commas.",
      "Node k that the server starts has the k-th, and sessions have the last; empty: the first "
      "device that has an active port.",
      &rdmacc_verbs_device, "", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.verbs_port", "Port of the RDMA device.",
                          "0: the first active one.", &rdmacc_verbs_port, 0, 0, UINT8_MAX,
                          PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("rdmacc.verbs_gid_index", "Index of the port's address (GID).",
                          "-1: a RoCE v2 address of IPv4, or what comes next to it.",
                          &rdmacc_verbs_gid_index, -1, -1, UINT8_MAX, PGC_POSTMASTER, 0, nullptr,
                          nullptr, nullptr);
  DefineCustomStringVariable(
      "rdmacc.cluster", "Addresses of nodes that are run elsewhere: host:port, by node number.",
      "Empty: the server starts nodes of its own on this host.", &rdmacc_cluster, "",
      PGC_POSTMASTER, 0, check_cluster, nullptr, nullptr);
  DefineCustomStringVariable(
      "rdmacc.cluster_name", "Name of the cluster that rdmacc.cluster names.", nullptr,
      &rdmacc_cluster_name_setting, "rdmacc", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("rdmacc.cluster_secret_file",
                             "File with the secret of the cluster that rdmacc.cluster names.",
                             "Mode 0600; the same content as on the nodes.",
                             &rdmacc_cluster_secret_file, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY,
                             nullptr, nullptr, nullptr);
}

}  // namespace

void rdmacc_guc_init(bool preloaded) {
  if (preloaded) rdmacc_guc_note_configured();
  define_session_settings();
  if (!preloaded) return;
  define_server_settings();
  define_cluster_settings();
  rdmacc_guc_refuse_invalid();
  MarkGUCPrefixReserved("rdmacc");
}

bool rdmacc_rows_are_durable(void) {
  return rdmacc_durability == RDMACC_DURABILITY_DISK && rdmacc_cluster != nullptr &&
         rdmacc_cluster[0] == '\0';
}

int rdmacc_worker_ids(void) {
  if (rdmacc_cluster[0] != '\0') {
    return rdmacc_max_workers > 0 ? rdmacc_max_workers : kRemoteWorkersDefault;
  }
  const int sessions =
      rdmacc_max_workers > 0 ? rdmacc_max_workers : Min(MaxBackends + 16, kWorkersMax);
  const int checkpointer = rdmacc_rows_are_durable() ? 1 : 0;
  return sessions + checkpointer + rdmacc_nodes * rdmacc_node_threads;
}
