/* SQL functions of the schema rdmacc, but for the access method's handler. */
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/remote_nodes.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/sql/result_rows.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "utils/builtins.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_version(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_nodes(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_version);
PG_FUNCTION_INFO_V1(rdmacc_stat_nodes);
}

namespace {

/* Columns of rdmacc.nodes(), in the order of the install script. */
enum StatNodesColumn {
  kNode,
  kPid,
  kState,
  kRegionBytes,
  kBackedBytes,
  kUsedBytes,
  kTables,
  kRows,
  kStarted,
  kRestarts,
  kRequests,
  kHost,
  kPort,
  kColumnCount
};

constexpr char kSilentState[] = "not answering";

/* What the node says of itself; NULLs when it does not answer. */
void fill_from_node(int node, Datum* values, bool* nulls) {
  static rdmacc::NodeStatistics statistics; /* outlives an error that ends the command */
  memset(&statistics, 0, sizeof(statistics));
  bridge_start_node_statistics(node, &statistics);
  rdmacc_pump();
  if (bridge_error()->code != rdmacc::Code::kOk) return;
  if (!bridge_node_answered()) {
    values[kState] = CStringGetTextDatum(kSilentState);
    return;
  }
  const struct {
    int column;
    uint64 value;
  } answers[] = {{kRegionBytes, statistics.region_bytes},
                 {kBackedBytes, statistics.backed_bytes},
                 {kUsedBytes, statistics.used_bytes},
                 {kTables, statistics.tables},
                 {kRows, statistics.rows},
                 {kRequests, statistics.requests}};
  for (const auto& answer : answers) {
    values[answer.column] = rdmacc_int8_datum(answer.value);
    nulls[answer.column] = false;
  }
}

void fill_from_supervisor(int node, Datum* values, bool* nulls) {
  RdmaccNodeStatus* status = &rdmacc_control->nodes[node];
  const uint32 pid = pg_atomic_read_u32(&status->pid);
  values[kNode] = Int32GetDatum(node);
  values[kPid] = Int32GetDatum(static_cast<int32>(pid));
  values[kState] = CStringGetTextDatum(rdmacc_node_state_name(pg_atomic_read_u32(&status->state)));
  values[kStarted] =
      TimestampTzGetDatum(static_cast<TimestampTz>(pg_atomic_read_u64(&status->started)));
  values[kRestarts] = Int32GetDatum(static_cast<int32>(pg_atomic_read_u32(&status->restarts)));
  nulls[kNode] = nulls[kState] = nulls[kRestarts] = false;
  nulls[kPid] = pid == 0;
  nulls[kStarted] = pid == 0 && !rdmacc_nodes_are_remote();
  char host[256];
  int port = 0;
  if (!bridge_node_address(rdmacc_fabric_description(), node, host, sizeof(host), &port)) return;
  values[kHost] = CStringGetTextDatum(host);
  values[kPort] = Int32GetDatum(port);
  nulls[kHost] = nulls[kPort] = false;
}

}  // namespace

Datum rdmacc_version(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  PG_RETURN_TEXT_P(cstring_to_text(RDMACC_VERSION));
}

Datum rdmacc_stat_nodes(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = rdmacc_begin_rows(fcinfo);
  const bool serving = rdmacc_all_nodes_serve(); /* those that are away are not waited for */
  if (serving) rdmacc_ensure_attached();
  for (int node = 0; node < rdmacc_nodes; ++node) {
    CHECK_FOR_INTERRUPTS();
    Datum values[kColumnCount] = {};
    bool nulls[kColumnCount];
    memset(nulls, 1, sizeof(nulls));
    fill_from_supervisor(node, values, nulls);
    if (serving) fill_from_node(node, values, nulls);
    rdmacc_put_row(result, values, nulls);
  }
  return static_cast<Datum>(0);
}
