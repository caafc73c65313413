/* Background workers that do one thing for the supervisor and end. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "postmaster/bgworker.h"

/* Starts `function` of this library with `argument`; the caller's latch is set when it starts and
 * ends. NULL when no worker slot is free. The handle lives until it is pfree'd. */
BackgroundWorkerHandle* rdmacc_launch_worker(const char* function, const char* name,
                                             Datum argument);
}
