#include "pg_rdmacc/server/remote_nodes.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/cluster_file.h"
#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/server/supervisor.h"

extern "C" {
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
}

namespace {

constexpr long kSettledMs = 1000;
constexpr long kAnswersMs = 100; /* after a question, or while a node is away */
constexpr int64 kLookUsMax = 5'000'000;
constexpr int kAddressBytes = 300;

ClusterFile file; /* as it is written */
bool told[RDMACC_NODES_MAX];

void address_of(int node, char* text, size_t text_bytes) {
  char host[256] = "";
  int port = 0;
  if (!bridge_node_address(rdmacc_fabric_description(), node, host, sizeof(host), &port)) {
    snprintf(text, text_bytes, "unknown");
  } else {
    snprintf(text, text_bytes, strchr(host, ':') != nullptr ? "[%s]:%d" : "%s:%d", host, port);
  }
}

void publish(int node, bool answers, const char* why) {
  CHECK(node >= 0 && node < RDMACC_NODES_MAX && (answers || why != nullptr));
  RdmaccNodeStatus* status = &rdmacc_control->nodes[node];
  const uint32 state = answers ? RDMACC_NODE_REMOTE : RDMACC_NODE_AWAY;
  const uint32 before = pg_atomic_read_u32(&status->state);
  if (state == before && told[node]) return;
  pg_atomic_write_u64(&status->started, static_cast<uint64>(GetCurrentTimestamp()));
  pg_atomic_write_u32(&status->state, state);
  if (answers && told[node]) {
    pg_atomic_fetch_add_u32(&status->restarts, 1);
    rdmacc_note_doubt(); /* as above: another node than node 0 may be the one that lost it */
  }
  told[node] = true;
  char address[kAddressBytes];
  address_of(node, address, sizeof(address));
  if (answers) {
    ereport(LOG, (errmsg("rdmacc node %d at %s answers", node, address)));
  } else {
    ereport(LOG, (errmsg("rdmacc node %d at %s is away", node, address),
                  errdetail_internal("%s.", why)));
  }
}

/* Node 0 has answered, with the id of its memory. Another one than before: whatever the nodes knew
 * is gone. */
void note_memory(uint64 memory, bool file_was_known) {
  const bool same = file.stamp == memory && strcmp(file.name, rdmacc_cluster_name()) == 0;
  if (!same || !rdmacc_cluster_serving()) {
    file.fresh = same ? file.fresh : file_was_known;
    file.stamp = memory;
    file.stopped = false;
    file.nodes = 0;
    file.postmaster = {PostmasterPid, process_start_ticks(PostmasterPid)};
    strlcpy(file.name, rdmacc_cluster_name(), sizeof(file.name));
    strlcpy(file.fabric, rdmacc_fabric, sizeof(file.fabric));
    cluster_file_write(&file);
    pg_atomic_write_u32(&rdmacc_control->fresh, file.fresh ? 1 : 0);
    if (!same && file.fresh) rdmacc_empty_tables_start();
    if (!same) rdmacc_note_doubt(); /* nodes wait for what is decided here */
  }
  pg_atomic_write_u32(&rdmacc_control->serving, 1);
}

int count_away(void) {
  int away = 0;
  for (int node = 0; node < rdmacc_nodes; ++node) {
    if (!rdmacc_node_answers(node)) ++away;
  }
  return away;
}

void report_activity(int away) {
  static int reported = -1;
  if (away == reported) return;
  reported = away;
  char text[64];
  snprintf(text, sizeof(text), "%d of %d nodes answer", rdmacc_nodes - away, rdmacc_nodes);
  pgstat_report_activity(STATE_IDLE, text);
}

void look(bool file_was_known) {
  uint64 answers_before = 0;
  uint64 answers = 0;
  bridge_watch_memory(&answers_before);
  bridge_watch_step();
  const uint64 memory = bridge_watch_memory(&answers);
  if (answers != answers_before) {
    note_memory(memory, file_was_known);
    pg_atomic_fetch_add_u32(&rdmacc_control->looks, 1);
  }
  for (int node = 0; node < rdmacc_nodes; ++node) {
    const char* why = nullptr;
    const bool answering = bridge_watch_answers(node, &why);
    if (why != nullptr) publish(node, answering, why);
  }
}

}  // namespace

void rdmacc_watch_remote_nodes(void (*sleep_ms)(long)) {
  CHECK(sleep_ms != nullptr && rdmacc_nodes_are_remote());
  const bool known = cluster_file_read(&file);
  if (!bridge_watch_open(rdmacc_fabric_description())) {
    ereport(ERROR, (errmsg("could not watch the rdmacc nodes"),
                    errdetail_internal("%s.", bridge_error()->message)));
  }
  for (int node = 0; node < rdmacc_nodes; ++node) {
    pg_atomic_write_u32(&rdmacc_control->nodes[node].state, RDMACC_NODE_AWAY);
  }
  bool asked = false;
  while (!ShutdownRequestPending) {
    look(known || file.stamp != 0);
    const int away = count_away();
    report_activity(away);
    rdmacc_empty_tables_step();
    if (ConfigReloadPending) {
      ConfigReloadPending = false;
      ProcessConfigFile(PGC_SIGHUP);
    }
    /* Every question is followed by a look at its answer. */
    asked = !asked;
    sleep_ms(away > 0 || asked ? kAnswersMs : kSettledMs);
  }
}

bool rdmacc_node_answers(int node) {
  CHECK(rdmacc_control != nullptr && node >= 0 && node < RDMACC_NODES_MAX);
  return pg_atomic_read_u32(&rdmacc_control->nodes[node].state) == RDMACC_NODE_REMOTE;
}

bool rdmacc_remote_nodes_serve(void) { return rdmacc_cluster_serving() && count_away() == 0; }

bool rdmacc_all_nodes_serve(void) {
  return rdmacc_nodes_are_remote() ? rdmacc_remote_nodes_serve() : rdmacc_cluster_serving();
}

bool rdmacc_remote_rows_are_gone(void) {
  if (!rdmacc_nodes_are_remote() || rdmacc_cluster_is_fresh()) return rdmacc_cluster_is_fresh();
  /* The first answer may be to a question that is older than what we have seen. */
  const uint32 seen = pg_atomic_read_u32(&rdmacc_control->looks);
  const int64 deadline_us = rdmacc_now_us() + kLookUsMax;
  while (pg_atomic_read_u32(&rdmacc_control->looks) - seen < 2 && rdmacc_now_us() < deadline_us) {
    CHECK_FOR_INTERRUPTS();
    pg_usleep(20 * 1000);
  }
  return rdmacc_cluster_is_fresh();
}

/* How many nodes are away: their number and addresses, as many as fit, in `names`. */
static int nodes_away(char* names, size_t names_bytes) {
  int away = 0;
  size_t length = 0;
  names[0] = '\0';
  for (int node = 0; node < rdmacc_nodes; ++node) {
    if (rdmacc_node_answers(node)) continue;
    char address[kAddressBytes];
    address_of(node, address, sizeof(address));
    if (length < names_bytes) {
      length += static_cast<size_t>(snprintf(names + length, names_bytes - length, "%s%d (%s)",
                                             away == 0 ? "" : ", ", node, address));
    }
    ++away;
  }
  return away;
}

void rdmacc_raise_nodes_away(const char* why) {
  char names[512];
  const int away = nodes_away(names, sizeof(names));
  ereport(ERROR,
          (errcode(ERRCODE_CANNOT_CONNECT_NOW), errmsg("an rdmacc node is not reachable"),
           away > 0 && why != nullptr ? errdetail_internal("Away: node %s. %s.", names, why)
           : away > 0                 ? errdetail_internal("Away: node %s.", names)
           : why != nullptr           ? errdetail_internal("%s.", why)
                                      : 0,
           errhint("See rdmacc.stat_nodes, and the logs of the nodes that rdmacc.cluster names.")));
  pg_unreachable();
}

void rdmacc_raise_refused(const char* why) {
  CHECK(why != nullptr);
  ereport(
      ERROR,
      (errcode(ERRCODE_SQLSERVER_REJECTED_ESTABLISHMENT_OF_SQLCONNECTION),
       errmsg("could not join the rdmacc nodes"), errdetail_internal("%s.", why),
       errhint("rdmacc.cluster, cluster_name, the secret file, node_threads (threads_per_node), "
               "node_memory (memory_mb) and max_workers (workers_max) have to be as in the "
               "config of the nodes.")));
  pg_unreachable();
}
