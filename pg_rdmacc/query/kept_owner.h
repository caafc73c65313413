/* The resource owner and the memory context to which PortalRun() returns.
 *
 * Within a savepoint PortalRun() remembers those of the subtransaction, and makes them the current
 * ones when the portal has run, whether they are still there or not (PostgreSQL lets statements end
 * only whole transactions, of which it looks them up anew). Where a block is run again, they have
 * been deleted meanwhile. Others are made in their place, at the same addresses, which belong to
 * the new subtransaction: whatever is charged to them later ends with that. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Before the statement's transaction is rolled back, each time: which have to be there when it is
 * run again. They are those of the first time, until they are forgotten. */
void rdmacc_note_owners(void);

/* Right after that. False: an address is taken, the statement that runs must fail. */
bool rdmacc_make_owners(void);

/* In the new transaction, at the subtransaction of the statement that is run again. */
void rdmacc_hand_over_owners(void);

/* The attempt has failed before that. */
void rdmacc_drop_owners(void);

/* The statement begins, or has failed. */
void rdmacc_forget_owners(void);
}
