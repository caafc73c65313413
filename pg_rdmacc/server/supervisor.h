/* The background worker that starts, watches and ends the nodes of this server. */
#pragma once
#include "pg_rdmacc/server/shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Registers the worker; from _PG_init under preload only. */
void rdmacc_supervisor_register(void);

/* Runs `step` about once a second, at most; before it begins, once. */
void rdmacc_supervisor_at_each_round(void (*step)(void));

/* The postmaster is ending the server, not this process alone. */
bool rdmacc_server_is_stopping(void);

/* empty_tables.cc: after a stop the tables of all databases are empty; says so in the server log.
 * start() lists the databases, step() runs one checking worker after the other and never blocks. */
void rdmacc_empty_tables_start(void);
void rdmacc_empty_tables_step(void);

#ifdef __cplusplus
}
#endif
