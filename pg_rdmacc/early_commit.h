/* The engine's commit of a statement that is a transaction of its own, at the statement's end and
 * not in PostgreSQL's commit, which follows: where its conflict can still be met by running the
 * statement again. */
#pragma once
#include "pg_rdmacc/held_rows.h"

extern "C" {

/* Commits if nothing that is still to come can fail: the query has run, triggers that were
 * deferred have, too, and `held` has its rows. Raises the conflict. */
void rdmacc_commit_early(const RdmaccHeldRows* held);
}
