/* Tables and indexes that the catalog shows to a transaction whose rows it cannot read: they were
 * made, or written anew, after the time as of which the engine's transaction reads (MVCC and the
 * like), or, on a standby, are not applied yet. Read all the same they would seem empty. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Before an engine transaction begins under that protocol (-1: the one that others have). */
void rdmacc_note_begin(int protocol);
/* Of a table or index that this session has not known before its transaction, which has not made
 * it. `made_us`: when its engine table was made, by node 0's clock; the catalog tells when it was
 * filled. One that is too new raises 40001; under protocols of a logical time what the transaction
 * has read has to be current at its commit then. On a standby waits until it is applied (57P03
 * after ten seconds). */
void rdmacc_check_age(Oid relation, const char* name, uint64 made_us);
/* Raises 57P03: it is not there at all. */
[[noreturn]] void rdmacc_raise_not_applied(const char* name);
}
