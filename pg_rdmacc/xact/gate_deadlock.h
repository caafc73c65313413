/* Deadlocks of the protocol gate and PostgreSQL's locks: a transaction under another protocol,
 * which this one waits for at the gate, waits for a lock that this one holds. PostgreSQL's detector
 * knows nothing of the gate. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* While a command waits. Costs a look at all of PostgreSQL's locks for each session on the way: to
 * be asked every deadlock_timeout. */
bool rdmacc_deadlocked_at_gate(void);
/* 40P01, as a conflict; after the command has ended. */
[[noreturn]] void rdmacc_raise_gate_deadlock(void);
}
