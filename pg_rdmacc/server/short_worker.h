/* Background workers that do one thing for the supervisor and end. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "postmaster/bgworker.h"

/* Starts `function` of this library with `argument`; the caller's latch is set when it starts and
 * ends. NULL when no worker slot is free. The handle lives until it is pfree'd. */
BackgroundWorkerHandle* rdmacc_launch_worker(const char* function, const char* name,
                                             Datum argument);

/* ---- The resolver (resolver.cc), which decides transactions in doubt. */
void rdmacc_note_doubt(void);    /* something may be in doubt: wakes it soon */
void rdmacc_resolver_step(void); /* for the supervisor, now and then: starts it when needed */
}
