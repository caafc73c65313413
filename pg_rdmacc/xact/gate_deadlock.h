/* Deadlocks of the protocol gate and PostgreSQL's locks: a transaction under another protocol,
 * which this one waits for at the gate, waits for a lock that this one holds. PostgreSQL's detector
 * knows nothing of the gate. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* While a command waits: raises 40P01, as a conflict. Costs a look at all of PostgreSQL's locks for
 * each session on the way: to be asked every deadlock_timeout. */
void rdmacc_check_gate_deadlock(void);
}
