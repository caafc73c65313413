/* Runs a statement of the journal as if the client had just sent it. */
#pragma once
#include "pg_rdmacc/query/journal.h"

extern "C" {
#include "tcop/cmdtag.h"
#include "tcop/dest.h"
#include "utils/portal.h"

/* Of EXECUTE: when its statement was prepared; a client may close one, and prepare another by its
 * name. 0: it is no EXECUTE, or there is none. */
TimestampTz rdmacc_prepared_at(const Node* statement);

/* Parses, plans (but for one that has a plan) and runs it in a portal of its own; its rows go to
 * `receiver`. In a transaction, which has no snapshot set. Raises what the statement raises. True
 * when the order of its rows matters. `first`: the portal of its first attempt, for which the rows
 * are, or NULL; where they are of other types now the conflict is the client's. */
bool rdmacc_run_sent(RdmaccSent* sent, Portal first, DestReceiver* receiver,
                     QueryCompletion* completion);
}
