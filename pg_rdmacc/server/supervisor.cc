/* One background worker per server. It makes the cluster, keeps every node running and takes the
 * cluster down when the server stops.
 *
 *   start            earlier cluster's leftovers removed, node 0 makes the shared memory, all
 *                    nodes are started, sessions may use them once all are ready
 *   node dies        started again on its memory; sessions see an error or wait, never lost rows
 *   backend crashes  PostgreSQL ends all its processes, this one too, and starts anew: the nodes
 *                    (sessions of their own, no children any more) go on and are adopted
 *   server stops     sessions end first, then the nodes; the shared memory is removed
 *   rows on disk     after a crash nodes are made anew as well: rows that went with the WAL's end
 *                    have to go from memory, too (pg_rdmacc/recovery/)
 *   a standby        starts nodes when it lets sessions in; they follow its WAL
 *   postmaster dies  nodes see it (--watch-pid) and end; the next start removes the leftovers
 *
 * Where others run the nodes (rdmacc.cluster) it starts and ends nothing: remote_nodes.h. */
#include "pg_rdmacc/server/supervisor.h"

#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/remote_nodes.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/server/supervised_node.h"

extern "C" {
#include <signal.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/pidfile.h"
#include "utils/ps_status.h"

PGDLLEXPORT void rdmacc_supervisor_main(Datum argument);
}

namespace {

constexpr long kIdleMs = 1000;
constexpr long kBusyMs = 20;                     /* while a node starts */
constexpr long kAdoptedMs = 200;                 /* an adopted node's end raises no SIGCHLD here */
constexpr int kSessionsMsMax = 1500;             /* a stop waits that long for sessions to end */
constexpr int kLastCheckpointMsMax = 600 * 1000; /* what it lacks is in the WAL */
constexpr int kNodesMsMax = 1500;                /* and that long for nodes before it kills them */

SupervisedNode nodes[RDMACC_NODES_MAX];
bool fresh;
bool on_disk; /* rows are, from the first checkpoint on */
void (*at_each_round)(void);
TimestampTz last_round;

void wake_on_child_end(int) {
  const int saved_errno = errno;
  SetLatch(MyLatch);
  errno = saved_errno;
}

/* Serves interrupts as well: DROP DATABASE, for one, waits until every process has answered. */
void sleep_ms(long timeout_ms) {
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
            PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  rdmacc_resolver_step();
}

/* Nodes that were started begin once they are in the file: after a crash in between, none runs that
 * the next start does not know. */
void save_cluster_file(bool stopped) {
  ClusterFile file = {};
  strlcpy(file.name, rdmacc_cluster_name(), sizeof(file.name));
  file.postmaster = {PostmasterPid, process_start_ticks(PostmasterPid)};
  file.stopped = stopped;
  strlcpy(file.fabric, rdmacc_fabric, sizeof(file.fabric));
  file.fresh = fresh;
  file.on_disk = on_disk;
  file.nodes = rdmacc_nodes;
  for (int i = 0; i < rdmacc_nodes; ++i) {
    file.processes[i] = nodes[i].process;
    file.restarts[i] = nodes[i].restarts;
  }
  cluster_file_write(&file);
  for (int i = 0; i < rdmacc_nodes; ++i) supervised_node_let_go(&nodes[i]);
}

/* Ends what is left of a cluster whose postmaster is gone. */
void remove_leftovers(const ClusterFile* file) {
  CHECK(file->name[0] != '\0');
  if (file->stopped || file->stamp != 0) return;
  if (process_alive(file->postmaster) && file->postmaster.pid != PostmasterPid) {
    /* A copy of another server's data directory: the cluster is that server's. */
    ereport(LOG, (errmsg("rdmacc cluster \"%s\" belongs to another running server", file->name)));
    return;
  }
  for (int i = 0; i < file->nodes; ++i) process_signal(file->processes[i], SIGKILL);
  BridgeFabric earlier;
  rdmacc_describe_local(file->fabric, file->name, file->nodes, &earlier);
  bridge_cluster_destroy(&earlier);
  bridge_remove_loopback(rdmacc_fabric_folder());
  ereport(LOG, (errmsg("removed what was left of rdmacc cluster \"%s\"", file->name)));
}

BridgeFabric own_cluster(void) {
  BridgeFabric own;
  rdmacc_describe_local(rdmacc_fabric, rdmacc_cluster_name(), rdmacc_nodes, &own);
  return own;
}

bool own_cluster_exists(void) {
  const BridgeFabric own = own_cluster();
  return bridge_cluster_exists(&own);
}

void destroy_own_cluster(void) {
  const BridgeFabric own = own_cluster();
  bridge_cluster_destroy(&own);
  bridge_remove_loopback(rdmacc_fabric_folder());
}

/* Addresses and a secret of its own, where the fabric needs such. */
void make_files(void) {
  if (!rdmacc_fabric_needs_files()) return;
  if (bridge_make_loopback(rdmacc_fabric_description(), rdmacc_nodes, rdmacc_fabric_folder())) {
    return;
  }
  ereport(ERROR, (errmsg("could not write the config of the rdmacc cluster"),
                  errdetail_internal("%s.", bridge_error()->message)));
}

void create_cluster(void) {
  if (own_cluster_exists()) destroy_own_cluster();
  make_files();
  supervised_node_start(&nodes[0], true);
  save_cluster_file(false);
  /* The others attach to what node 0 makes; should that fail, it is made at the next try. */
  while (!own_cluster_exists()) {
    sleep_ms(kBusyMs);
    if (ShutdownRequestPending) return;
    if (supervised_node_ended(&nodes[0])) {
      ereport(ERROR, (errmsg("could not create the rdmacc cluster"),
                      errdetail("Node 0 ended at its start; its message stands above.")));
    }
  }
  for (int i = 1; i < rdmacc_nodes; ++i) supervised_node_start(&nodes[i], false);
  save_cluster_file(false);
}

/* After a crash restart of the server: the same postmaster, so the same name. */
void adopt_cluster(const ClusterFile* file) {
  CHECK(file->nodes == rdmacc_nodes);
  for (int i = 0; i < rdmacc_nodes; ++i) {
    const bool alive = supervised_node_adopt(&nodes[i], file->processes[i], file->restarts[i]);
    if (!alive) supervised_node_start(&nodes[i], false);
  }
  save_cluster_file(false);
  ereport(LOG, (errmsg("rdmacc nodes outlived the restart of the server")));
}

/* Nodes that ran before the last crash, where rows are on disk, may have some that are not. */
bool may_be_adopted(void) {
  return !rdmacc_rows_are_durable() || pg_atomic_read_u32(&rdmacc_control->made) != 0;
}

void end_nodes_of(const ClusterFile* file) {
  CHECK(rdmacc_rows_are_durable()); /* or their rows would go */
  for (int i = 0; i < file->nodes; ++i) process_signal(file->processes[i], SIGKILL);
  ereport(LOG, (errmsg("rdmacc nodes are made anew, from what is on disk")));
}

bool find_or_create_cluster(void) {
  ClusterFile file;
  const bool known = cluster_file_read(&file);
  const bool ours = known && strcmp(file.name, rdmacc_cluster_name()) == 0;
  if (ours && !may_be_adopted()) {
    end_nodes_of(&file);
  } else if (ours && file.nodes == rdmacc_nodes && own_cluster_exists()) {
    fresh = file.fresh;
    on_disk = file.on_disk;
    adopt_cluster(&file);
    return false;
  }
  fresh = known && !RecoveryInProgress(); /* a standby has had no rows in memory alone */
  on_disk = known && file.on_disk && rdmacc_rows_are_durable();
  pg_atomic_write_u32(&rdmacc_control->was_on_disk, on_disk ? 1 : 0);
  if (known && !ours) remove_leftovers(&file);
  create_cluster();
  pg_atomic_write_u32(&rdmacc_control->made, 1);
  return true;
}

int ready_count(void) {
  int count = 0;
  for (int i = 0; i < rdmacc_nodes; ++i) count += nodes[i].ready ? 1 : 0;
  return count;
}

void report_activity(void) {
  char text[64];
  snprintf(text, sizeof(text), "%d of %d nodes running", ready_count(), rdmacc_nodes);
  pgstat_report_activity(STATE_IDLE, text);
}

void watch_nodes(void) {
  bool changed = false;
  for (int i = 0; i < rdmacc_nodes; ++i) changed |= supervised_node_step(&nodes[i]);
  if (ready_count() == rdmacc_nodes) pg_atomic_write_u32(&rdmacc_control->serving, 1);
  if (!on_disk && rdmacc_rows_are_durable() && !rdmacc_rows_are_recovering()) {
    on_disk = changed = true;
  }
  if (!changed) return;
  save_cluster_file(false);
  report_activity();
}

void work_of_a_round(void) {
  const TimestampTz now = GetCurrentTimestamp();
  if (at_each_round == nullptr || !TimestampDifferenceExceeds(last_round, now, kIdleMs)) return;
  last_round = now;
  at_each_round();
}

long idle_ms(void) {
  long timeout_ms = kIdleMs;
  if (!on_disk && rdmacc_rows_are_durable()) return kBusyMs; /* it soon is */
  for (int i = 0; i < rdmacc_nodes; ++i) {
    if (!nodes[i].ready) return kBusyMs;
    if (!nodes[i].child) timeout_ms = kAdoptedMs;
  }
  return timeout_ms;
}

bool wait_for(bool (*condition)(void), int ms_max) {
  const TimestampTz begin = GetCurrentTimestamp();
  while (!condition()) {
    if (TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), ms_max)) return false;
    pg_usleep(10 * 1000);
  }
  return true;
}

/* Sessions that still end their transactions need the nodes. The supervisor counts itself, and the
 * checkpointer, which waits for the same. */
bool sessions_have_ended(void) {
  const bool checkpointer = pg_atomic_read_u32(&rdmacc_control->checkpointer_pid) != 0;
  return CountDBBackends(InvalidOid) <= (checkpointer ? 2 : 1);
}

bool last_checkpoint_is_made(void) {
  return pg_atomic_read_u32(&rdmacc_control->checkpointer_pid) == 0;
}

bool nodes_have_ended(void) {
  bool all = true;
  for (int i = 0; i < rdmacc_nodes; ++i) all &= supervised_node_ended(&nodes[i]);
  return all;
}

void stop_cluster(void) {
  pg_atomic_write_u32(&rdmacc_control->stopping, 1);
  wait_for(sessions_have_ended, kSessionsMsMax);
  wait_for(last_checkpoint_is_made, kLastCheckpointMsMax);
  for (int i = 0; i < rdmacc_nodes; ++i) process_signal(nodes[i].process, SIGTERM);
  if (!wait_for(nodes_have_ended, kNodesMsMax)) {
    for (int i = 0; i < rdmacc_nodes; ++i) process_signal(nodes[i].process, SIGKILL);
    wait_for(nodes_have_ended, kNodesMsMax);
  }
  destroy_own_cluster();
  save_cluster_file(true);
  ereport(LOG, (errmsg("rdmacc nodes have ended")));
}

}  // namespace

void rdmacc_supervisor_at_each_round(void (*step)(void)) {
  CHECK(at_each_round == nullptr && step != nullptr);
  at_each_round = step;
}

/* The postmaster says so in its lock file. Told to end for any other reason (pg_terminate_backend),
 * the supervisor leaves the nodes alone, and the one started after it adopts them. */
bool rdmacc_server_is_stopping(void) {
  FILE* stream = AllocateFile("postmaster.pid", "r");
  if (stream == nullptr) return true;
  char line[MAXPGPATH] = "";
  for (int number = 1; number <= LOCK_FILE_LINE_PM_STATUS; ++number) {
    if (fgets(line, sizeof(line), stream) == nullptr) line[0] = '\0';
  }
  FreeFile(stream);
  return strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
}

void rdmacc_supervisor_register(void) {
  CHECK(process_shared_preload_libraries_in_progress); /* later ones would be ignored */
  BackgroundWorker worker = {};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  /* A standby's nodes get its rows. */
  worker.bgw_start_time =
      rdmacc_rows_are_durable() ? BgWorkerStart_ConsistentState : BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = 1;
  strlcpy(worker.bgw_library_name, "pg_rdmacc", sizeof(worker.bgw_library_name));
  strlcpy(worker.bgw_function_name, "rdmacc_supervisor_main", sizeof(worker.bgw_function_name));
  strlcpy(worker.bgw_name, "rdmacc supervisor", sizeof(worker.bgw_name));
  strlcpy(worker.bgw_type, "rdmacc supervisor", sizeof(worker.bgw_type));
  RegisterBackgroundWorker(&worker);
}

void rdmacc_supervisor_main(Datum) {
  pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  pqsignal(SIGCHLD, wake_on_child_end);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);

  CHECK(rdmacc_control != nullptr && rdmacc_nodes >= 1 && rdmacc_nodes <= RDMACC_NODES_MAX);
  if (rdmacc_nodes_are_remote()) {
    rdmacc_note_doubt();
    ClusterFile earlier;
    if (cluster_file_read(&earlier)) remove_leftovers(&earlier);
    rdmacc_watch_remote_nodes(sleep_ms);
    /* Told to end for another reason than a stop, it is started again. */
    if (!rdmacc_server_is_stopping()) proc_exit(1);
    pg_atomic_write_u32(&rdmacc_control->stopping, 1);
    proc_exit(0);
  }
  for (int i = 0; i < rdmacc_nodes; ++i) supervised_node_init(&nodes[i], i);
  const bool created = find_or_create_cluster();
  pg_atomic_write_u32(&rdmacc_control->fresh, fresh ? 1 : 0);
  /* Nodes that outlived sessions may keep what these had prepared. */
  if (!created) rdmacc_note_doubt();
  report_activity();
  if (created && fresh && !rdmacc_rows_are_durable()) rdmacc_empty_tables_start();

  while (!ShutdownRequestPending) {
    watch_nodes();
    rdmacc_empty_tables_step();
    work_of_a_round();
    if (ConfigReloadPending) {
      ConfigReloadPending = false;
      ProcessConfigFile(PGC_SIGHUP);
    }
    sleep_ms(idle_ms());
  }
  if (!rdmacc_server_is_stopping()) proc_exit(1);
  stop_cluster();
  proc_exit(0);
}
