/* Transactions that change rows of rdmacc tables and something of PostgreSQL's own: prepared in the
 * engine before PostgreSQL's commit record, which decides, and committed after it. What a crash
 * leaves between the two is in doubt until the resolver (resolver.cc) has looked at pg_xact. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* In PRE_COMMIT, for a transaction that has written: prepares it under its XID. Raises 0A000 when
 * the protocol cannot; any other failure is told (false) and in bridge_error(). */
bool rdmacc_prepare_engine(void);

/* In PRE_COMMIT, for a transaction that has written rows of rdmacc tables alone and whose rows are
 * to be on disk: commits it by a record in the WAL. Fails as rdmacc_prepare_engine(). */
bool rdmacc_commit_engine_by_record(void);

/* Of the number under which such a transaction is prepared in the engine; the session's process id
 * is the rest of it. */
#define RDMACC_DECIDED_BY_RECORD (UINT64_C(1) << 63)

/* In XACT_EVENT_COMMIT: commits what is prepared. Raises nothing; what cannot be done now is left
 * to the resolver. */
void rdmacc_commit_prepared_engine(void);

typedef enum RdmaccOutcome {
  RDMACC_OUTCOME_COMMITTED,
  RDMACC_OUTCOME_ABORTED,
  RDMACC_OUTCOME_OPEN,   /* still in progress */
  RDMACC_OUTCOME_UNKNOWN /* pg_xact does not know it, or no more */
} RdmaccOutcome;

/* What pg_xact says of a full transaction id. */
RdmaccOutcome rdmacc_outcome_of(uint64 xid);
}
