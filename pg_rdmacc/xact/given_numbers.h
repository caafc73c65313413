/* Numbers of sequences, as currval() and lastval() tell them in a block that is run again.
 *
 * A statement that is run again is given the numbers that an earlier attempt has drawn.
 * PostgreSQL's session knows nothing of that: it tells the number that was drawn
 * last, in whichever attempt. Until an attempt has come to that number, what it was given last is
 * told instead; and what was told before the block drew any, if a number was asked for then.
 *
 * Invariant: when the statement that has lost, or COMMIT, ends without an error, the attempt has
 * been given, or has drawn, the last number of each sequence of which an attempt has drawn one, and
 * the same sequence last, so that from there on the session tells what belongs to this attempt
 * (rdmacc_numbers_are_settled). */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Within a block that may have been run again, or may be: */

/* The session has drawn it. It is given as well. */
void rdmacc_number_drawn(Oid sequence, int64 number);
void rdmacc_number_given(Oid sequence, int64 number);

/* In: what the session tells. Out: what the attempt is told. False where that is not known: an
 * earlier attempt has drawn the session's number, and this one has drawn none. */
bool rdmacc_current_number(Oid sequence, int64* number);
bool rdmacc_last_number(int64* number);

/* ---- */

/* A block is run again from its BEGIN on. */
void rdmacc_numbers_begin_attempt(void);

/* True for the first attempt. */
bool rdmacc_numbers_are_settled(void);

/* The attempt is not the first one of its block. */
bool rdmacc_numbers_are_given_again(void);

/* The transaction has ended. */
void rdmacc_numbers_forget(void);
}
