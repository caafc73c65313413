/* Where rdmacc tables cannot be used, and how a transaction enters the engine where they can. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Raises 0A000 in processes, and under settings, in which no transaction can enter the engine. */
void rdmacc_check_entry(void);

/* The same in a parallel worker, of what it does not share with its leader. */
[[noreturn]] void rdmacc_refuse_worker(void);

/* That of the session's next transaction, as rdmacc_protocol has it. On a standby it is one under
 * which neither readers wait for, or lose to, what is applied, nor the other way round. */
int rdmacc_protocol_to_begin(bool standby);
/* At most so long at the gate; 0: no limit. */
uint64 rdmacc_gate_timeout_us(void);
}
