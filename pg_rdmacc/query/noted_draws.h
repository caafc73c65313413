/* What a statement of a block draws and no ROLLBACK takes back, or what comes out differently each
 * time: numbers of sequences, random numbers, the time. A statement that is run again is given what
 * it drew the first time, in the same order, since the client may have been told (INSERT …
 * RETURNING), and numbers are not used up.
 *
 * In plans, functions of the extension that ask here stand for those that draw (draw_plans.h). */
#pragma once
#include "pg_rdmacc/query/journal.h"

extern "C" {

/* The statement whose draws are noted from now on, and given again as far as it has drawn before.
 * NULL: none. */
void rdmacc_note_draws_of(RdmaccSent* sent);

/* Of a statement that is left out: the session tells its numbers, as after its first attempt. */
void rdmacc_give_numbers_of(const RdmaccSent* sent);
}
