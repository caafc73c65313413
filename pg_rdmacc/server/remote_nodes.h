/* Nodes that others run (rdmacc.cluster): the supervisor watches whether they answer, and whether
 * node 0 still has the memory that it had; sessions are told by the control block.
 *
 *   a node does not answer     `away` in rdmacc.stat_nodes; sessions that attach wait for it, and
 *                              then fail with 57P03
 *   node 0 has lost its memory  every table's rows are gone: as after a stop of a server that runs
 *                              its own nodes, tables are made anew when they are used
 *   this server stops          nothing: rows stay in the nodes and are found again */
#pragma once
#include "pg_rdmacc/server/shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The supervisor's work until it is told to end. `sleep_ms` serves interrupts. */
void rdmacc_watch_remote_nodes(void (*sleep_ms)(long));

/* Every node answers, and what they know of tables can be relied on. */
bool rdmacc_remote_nodes_serve(void);

/* Nodes of this server or remote ones: they can be asked without waiting for them. */
bool rdmacc_all_nodes_serve(void);

bool rdmacc_node_answers(int node);

/* Waits, for a bounded time, until the supervisor has asked node 0 once more; true if rows are
 * gone. For a session that does not find a table. */
bool rdmacc_remote_rows_are_gone(void);

/* 57P03 that names the nodes that are away; `why` may be NULL. */
[[noreturn]] void rdmacc_raise_nodes_away(const char* why);
/* 08004: they have another topology, or what the settings say cannot be used. */
[[noreturn]] void rdmacc_raise_refused(const char* why);

#ifdef __cplusplus
}
#endif
