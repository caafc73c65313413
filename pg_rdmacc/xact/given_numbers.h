/* Numbers of sequences, as currval() and lastval() tell them in what is run again.
 *
 * PostgreSQL's session tells the number that was drawn last, in whichever attempt. Statements of a
 * block are given the numbers again that an earlier attempt has drawn, and until an attempt has
 * come to the last of them, what it was given last is told instead. (A statement alone draws anew.)
 * Before that it is told what the session told before any attempt drew, if that was asked for.
 *
 * Invariant: when the statement of a block that has lost, or COMMIT, ends without an error, the
 * attempt has been given, or has drawn, the last number of each sequence of which an attempt has
 * drawn one, and the same sequence last, so that from there on the session tells what belongs to
 * this attempt (rdmacc_numbers_are_settled). */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Within a block, or a statement alone, that may have been run again, or may be: */

/* The session has drawn it. It is given as well. */
void rdmacc_number_drawn(Oid sequence, int64 number);
void rdmacc_number_given(Oid sequence, int64 number);

/* In: what the session tells. Out: what the attempt is told. False where that is not known: an
 * earlier attempt has drawn the session's number, and this one has drawn none. */
bool rdmacc_current_number(Oid sequence, int64* number);
bool rdmacc_last_number(int64* number);

/* ---- */

/* A block is run again from its BEGIN on, or a statement alone. */
void rdmacc_numbers_begin_attempt(void);

/* True for the first attempt. */
bool rdmacc_numbers_are_settled(void);

/* The attempt is not the first one of its block. */
bool rdmacc_numbers_are_given_again(void);

/* The transaction has ended, which is none of a query's attempts. */
void rdmacc_numbers_forget(void);

/* A query alone begins, which may have several attempts, or has ended. */
void rdmacc_numbers_keep(bool keep);
bool rdmacc_numbers_are_kept(void);
}
