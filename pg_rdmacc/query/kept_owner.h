/* The resource owner to which PortalRun() returns.
 *
 * Within a savepoint PortalRun() remembers the subtransaction's owner, and makes it the current one
 * when the portal has run, whether that owner is still there or not (PostgreSQL lets statements end
 * only whole transactions, whose owner it looks up anew). Where a block is run again, the owner has
 * been deleted meanwhile. Another one is made in its place, at the same address, which belongs to
 * the new subtransaction: whatever is charged to it later ends with that. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Before the transaction is rolled back: which owners have to be there afterwards. */
void rdmacc_note_owners(void);

/* Right after that. False: an address is taken, the statement that runs must fail. */
bool rdmacc_make_owners(void);

/* In the new transaction, at the subtransaction of the statement that is run again. */
void rdmacc_hand_over_owners(void);

/* The statement fails: they are not needed. */
void rdmacc_drop_owners(void);
}
