/* Transactions that change rows of rdmacc tables and something of PostgreSQL's own: prepared in the
 * engine before PostgreSQL's commit record, which decides, and committed after it. What a crash
 * leaves between the two is in doubt until the resolver (resolver.cc) has looked at pg_xact. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

/* Values of rdmacc.debug_stop_at: where a committing session stands still for a while, so that a
 * test can kill it there. */
#define RDMACC_STOP_NOWHERE 0
#define RDMACC_STOP_PREPARED 1 /* before PostgreSQL's commit record */
#define RDMACC_STOP_RECORDED 2 /* after it */

/* In PRE_COMMIT, for a transaction that has written: prepares it under its XID. Raises 0A000 when
 * the protocol cannot; any other failure is told (false) and in bridge_error(). */
bool rdmacc_prepare_engine(void);

/* In XACT_EVENT_COMMIT: commits what is prepared. Raises nothing; what cannot be done now is left
 * to the resolver. */
void rdmacc_commit_prepared_engine(void);

/* ---- resolver.cc: a short-lived background worker that decides what is in doubt. */
void rdmacc_note_doubt(void);    /* something may be in doubt: wakes it soon */
void rdmacc_resolver_step(void); /* for the supervisor, now and then: starts it when needed */

typedef enum RdmaccOutcome {
  RDMACC_OUTCOME_COMMITTED,
  RDMACC_OUTCOME_ABORTED,
  RDMACC_OUTCOME_OPEN,   /* still in progress */
  RDMACC_OUTCOME_UNKNOWN /* pg_xact does not know it, or no more */
} RdmaccOutcome;

/* ---- orphans.cc: drops this server's engine tables that no catalog knows: of databases that are
 * gone, of transactions that a crash has aborted, and what a crash kept from being dropped. From
 * the resolver, when nothing is in doubt. */
void rdmacc_drop_orphans(void);

/* What pg_xact says of a full transaction id. */
RdmaccOutcome rdmacc_outcome_of(uint64 xid);
}
