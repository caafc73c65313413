#include "pg_rdmacc/server/supervised_node.h"

#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/programs.h"

extern "C" {
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"
}

namespace {

constexpr int kReadyMsMax = 60 * 1000; /* a node that is not ready by then is ended */
constexpr int kRetryMsMax = 10 * 1000; /* pause after repeated failures */
constexpr int kLastingMs = 10 * 1000;  /* a node that served so long did not fail to start */
constexpr int kQuickRestartsMax = 4;
constexpr int kArgumentBytes = MAXPGPATH + 16;

/* Fills the control block's entry, which views and waiting sessions read. */
void publish(const SupervisedNode* node) {
  CHECK(rdmacc_control != nullptr && node->number >= 0 && node->number < RDMACC_NODES_MAX);
  RdmaccNodeStatus* status = &rdmacc_control->nodes[node->number];
  pg_atomic_write_u32(&status->pid, static_cast<uint32>(node->process.pid));
  pg_atomic_write_u32(&status->restarts, node->restarts);
  pg_atomic_write_u64(&status->started, static_cast<uint64>(node->started));
  pg_atomic_write_u32(&status->state, node->process.pid == 0 ? RDMACC_NODE_STOPPED
                                      : node->ready          ? RDMACC_NODE_RUNNING
                                                             : RDMACC_NODE_STARTING);
}

bool spawn(SupervisedNode* node, const char* program, bool create_cluster) {
  char text[10][kArgumentBytes];
  int count = 0;
  snprintf(text[count++], kArgumentBytes, "rdmacc_node");
  snprintf(text[count++], kArgumentBytes, "--node=%d", node->number);
  snprintf(text[count++], kArgumentBytes, "--watch-pid=%d", static_cast<int>(PostmasterPid));
  if (rdmacc_fabric_needs_files()) {
    snprintf(text[count++], kArgumentBytes, "--config=%s", rdmacc_fabric_config());
    snprintf(text[count++], kArgumentBytes, "--fabric=%s", rdmacc_fabric);
    if (rdmacc_verbs_device[0] != '\0') {
      snprintf(text[count++], kArgumentBytes, "--verbs-device=%s", rdmacc_verbs_device);
    }
    snprintf(text[count++], kArgumentBytes, "--verbs-port=%d", rdmacc_verbs_port);
    snprintf(text[count++], kArgumentBytes, "--verbs-gid=%d", rdmacc_verbs_gid_index);
  } else {
    snprintf(text[count++], kArgumentBytes, "--cluster=%s", rdmacc_cluster_name());
    snprintf(text[count++], kArgumentBytes, "--nodes=%d", rdmacc_nodes);
    snprintf(text[count++], kArgumentBytes, "--threads=%d", rdmacc_node_threads);
    snprintf(text[count++], kArgumentBytes, "--memory=%d", rdmacc_node_memory_mb);
    snprintf(text[count++], kArgumentBytes, "--workers-max=%d", rdmacc_worker_ids());
    if (create_cluster) snprintf(text[count++], kArgumentBytes, "--create");
  }
  CHECK(count <= static_cast<int>(lengthof(text)));
  char* arguments[lengthof(text) + 2] = {};
  for (int i = 0; i < count; ++i) arguments[i] = text[i];
  char no_huge_pages[] = "--no-huge-pages";
  if (rdmacc_huge_pages == 0) arguments[count] = no_huge_pages;
  return process_start(program, arguments, &node->process, &node->ready_fd, &node->go_fd);
}

void postpone(SupervisedNode* node) {
  ++node->failures;
  const int pause_ms = Min(kRetryMsMax, 250 << Min(node->failures, 6));
  node->next_start = GetCurrentTimestamp() + static_cast<TimestampTz>(pause_ms) * 1000;
}

void close_pipes(SupervisedNode* node) {
  if (node->ready_fd >= 0) close(node->ready_fd);
  if (node->go_fd >= 0) close(node->go_fd);
  node->ready_fd = node->go_fd = -1;
}

void describe_end(int wait_status, char* text, size_t text_bytes) {
  if (WIFSIGNALED(wait_status)) {
    snprintf(text, text_bytes, "was ended by signal %d", WTERMSIG(wait_status));
  } else {
    snprintf(text, text_bytes, "exited with status %d", WEXITSTATUS(wait_status));
  }
}

/* True once the process has gone, with words for how. A child is reaped; an adopted one belongs
 * to init. */
bool has_ended(SupervisedNode* node, char* how, size_t how_bytes) {
  if (!node->child) {
    snprintf(how, how_bytes, "ended");
    return !process_alive(node->process);
  }
  int wait_status = 0;
  if (process_reap(node->process.pid, &wait_status)) {
    describe_end(wait_status, how, how_bytes);
    return true;
  }
  return false;
}

void note_ended(SupervisedNode* node, const char* how) {
  CHECK(node->process.pid > 0);
  ereport(LOG, (errmsg("rdmacc node %d (process %d) %s", node->number,
                       static_cast<int>(node->process.pid), how),
                node->ready ? errdetail("It is started again on its memory.") : 0));
  /* One that had served is started at once, unless it keeps dying; one that never got ready waits
   * longer each time. */
  if (node->ready && TimestampDifferenceExceeds(node->started, GetCurrentTimestamp(), kLastingMs)) {
    node->failures = 0;
  }
  if (node->ready && node->failures < kQuickRestartsMax) {
    ++node->failures;
    node->next_start = 0;
  } else {
    postpone(node);
  }
  node->process = {};
  node->ready = false;
  ++node->restarts;
  close_pipes(node);
  publish(node);
}

bool check_ready(SupervisedNode* node) {
  CHECK(node->child && node->ready_fd >= 0);
  if (process_said_ready(node->ready_fd)) {
    node->ready = true;
    publish(node);
    ereport(LOG, (errmsg("rdmacc node %d (process %d) is ready", node->number,
                         static_cast<int>(node->process.pid))));
    return true;
  }
  if (TimestampDifferenceExceeds(node->started, GetCurrentTimestamp(), kReadyMsMax)) {
    ereport(LOG, (errmsg("rdmacc node %d (process %d) did not become ready in time", node->number,
                         static_cast<int>(node->process.pid))));
    process_signal(node->process, SIGKILL);
  }
  return false;
}

}  // namespace

void supervised_node_init(SupervisedNode* node, int number) {
  memset(node, 0, sizeof(*node));
  node->number = number;
  node->ready_fd = node->go_fd = -1;
  publish(node);
}

void supervised_node_let_go(SupervisedNode* node) {
  if (node->go_fd < 0) return;
  process_let_go(node->go_fd);
  node->go_fd = -1;
}

bool supervised_node_adopt(SupervisedNode* node, ProcessIdentity process, uint32 restarts) {
  CHECK(node->process.pid == 0 && node->ready_fd < 0);
  node->restarts = restarts;
  if (!process_alive(process)) return false;
  node->process = process;
  node->child = false;
  /* It was ready, or it is on its way there: sessions that need it wait as after any start. */
  node->ready = true;
  node->started = GetCurrentTimestamp();
  publish(node);
  return true;
}

void supervised_node_start(SupervisedNode* node, bool create_cluster) {
  CHECK(node->process.pid == 0 && node->ready_fd < 0); /* or the one before was lost sight of */
  char program[MAXPGPATH];
  if (!rdmacc_find_program("rdmacc_node", program)) {
    ereport(WARNING, (errcode_for_file_access(), errmsg("could not find program \"%s\"", program),
                      errhint("Set rdmacc.node_program to the path of rdmacc_node.")));
    postpone(node);
    return;
  }
  if (!spawn(node, program, create_cluster)) {
    ereport(WARNING, (errmsg("could not start rdmacc node %d: %m", node->number)));
    postpone(node);
    return;
  }
  node->child = true;
  node->ready = false;
  node->started = GetCurrentTimestamp();
  publish(node);
}

bool supervised_node_ended(SupervisedNode* node) {
  if (node->process.pid == 0) return true;
  char how[64];
  if (!has_ended(node, how, sizeof(how))) return false;
  node->process = {};
  close_pipes(node);
  publish(node);
  return true;
}

bool supervised_node_step(SupervisedNode* node) {
  if (node->process.pid == 0) {
    if (GetCurrentTimestamp() < node->next_start) return false;
    supervised_node_start(node, false);
    return node->process.pid != 0;
  }
  char how[64];
  if (has_ended(node, how, sizeof(how))) {
    note_ended(node, how);
    return true;
  }
  return !node->ready && check_ready(node);
}
