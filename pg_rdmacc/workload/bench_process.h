/* rdmacc_bench as a process of this session, on the server's own nodes. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* What the program is asked for; texts as its options of these names take them. */
typedef struct RdmaccBenchRun {
  const char* workload;
  const char* preset;   /* NULL: none */
  const char* protocol; /* NULL, as the next two: the preset's, or the program's default */
  const char* stages;
  const char* lock_mode;
  bool enumerate;       /* all distinct codes, one after the other; without `stages` */
  const char* settings; /* of the workload: "records=1000,zipf=0.5" */
  double seconds;
  int threads;
  int coroutines;
  int64 seed;
} RdmaccBenchRun;

/* Runs it to its end and gives its report, JSON, palloc'ed; its lines of progress become NOTICEs.
 * The session has to be attached.
 *
 * 22023: it does not take what it was asked for; 55000: it cannot be started; XX001: the workload's
 * invariant is broken, or tables are not sound; 58000: it failed. Cancelled, it is ended within two
 * seconds, whatever the nodes do; then, and whenever it did not end by itself, the resolver
 * drops the tables that it left. */
char* rdmacc_run_bench(const RdmaccBenchRun* run);
}
