/* The session whose transaction holds a row that this one wants, and waiting for it. What names a
 * lock's holder in the nodes' memory is found among this server's sessions, and the wait is one
 * for a virtual transaction in PostgreSQL's lock table: with its deadlock detection, lock_timeout,
 * pg_locks and pg_blocking_pids(). */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/lock.h"

/* All zeros: the wait has not begun. */
typedef struct RdmaccHolderWait {
  uint64 transaction; /* that held the row at the last look */
  VirtualTransactionId session;
  TimestampTz polling_since; /* for a holder that cannot be waited for; 0: it could */
  int looks;
} RdmaccHolderWait;

/* rdmacc_pump() for a command that reads rows. True: another transaction's lock has ended it, and
 * the transaction may wait for that and go on, in the place of the protocol's conflict: always if
 * the statement locks the rows that it reads (FOR UPDATE and its kind), else where reads hold no
 * locks; never under a deterministic protocol. */
bool rdmacc_pump_unless_held(bool locks_rows);

/* True when writes of this transaction, or of one that begins now, lock their rows at once
 * (rdmacc.lock_writes, or the last attempt has perhaps lost to sharers: only at the write is it
 * known for whom to wait); a transaction that locks what it reads has them locked already. */
bool rdmacc_locks_at_write(void);
/* True when FOR SHARE takes locks of its own: where reads take none, and not in one order. */
bool rdmacc_shares_rows(void);

/* The last command has met a lock of another transaction; `sharer`: one that shares the row
 * (row_sharers.h), for locks that name no holder; RDMACC_NO_SESSION: none is known. Returns when
 * the command is to be tried again; raises what ends the wait. */
void rdmacc_wait_for_holder(RdmaccHolderWait* wait, VirtualTransactionId sharer,
                            const char* relation);

/* How often that has been called in this session. */
uint64 rdmacc_waits_for_holders(void);

/* A command has failed, perhaps for a lock of another transaction: whose, for the next attempt. */
void rdmacc_note_holder(bool held_by_another);
/* A statement or block has lost for the first time: lock_timeout counts from here. */
void rdmacc_begin_to_lose(void);
/* Before the next attempt begins to run, after so many losses: until the holder's transaction has
 * ended, or for a second. */
void rdmacc_let_holder_pass(int lost);

extern const RdmaccTransactionPart rdmacc_lock_holder_part;
}
