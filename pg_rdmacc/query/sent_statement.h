/* Runs a statement of the journal as if the client had just sent it. */
#pragma once
#include "pg_rdmacc/query/journal.h"

extern "C" {
#include "tcop/cmdtag.h"
#include "tcop/dest.h"

/* Parses, plans and runs it in a portal of its own; its rows go to `receiver`. In a transaction,
 * which has no snapshot set. Raises what the statement raises. True when the order of its rows
 * matters. */
bool rdmacc_run_sent(RdmaccSent* sent, DestReceiver* receiver, QueryCompletion* completion);
}
