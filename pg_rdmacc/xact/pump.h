/* Bridge commands, from when they are started to their end. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Runs the bridge command that was just started to its end, serving interrupts; raises theirs. The
 * result is in bridge_error(). */
void rdmacc_pump(void);

/* The same of a command that another transaction's lock alone may end without harm. True: it has;
 * the caller tries again or raises. */
bool rdmacc_pump_or_held(void);

/* The same of a command whose result must not get lost: interrupts wait until it is there. */
void rdmacc_pump_whole(void);

/* The same without serving interrupts, and raising none: for the commit round and for clean-up.
 * False when it stood still for 30 s (for 1 s, once the statement is cancelled or the session is to
 * end). Then this backend is out of the cluster and ends soon: nodes find what it holds when it has
 * gone. */
bool rdmacc_pump_uninterrupted(void);
/* Of a transaction that is committed: no cancel makes it wait for less. */
bool rdmacc_pump_committed(void);

/* At the end of a transaction. */
void rdmacc_pump_forget(void);
}
