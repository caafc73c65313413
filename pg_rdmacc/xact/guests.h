/* Parallel workers that read for their leader's transaction: its guests (engine/session.h). A
 * worker begins as one with its first row of a table, lends what it has read when its transaction
 * ends, in a segment of shared memory, and the leader borrows that before it commits, or before it
 * says that an error is one.
 *
 *  G1  A worker says in its leader's slots that it reads before it reads anything, and that it has
 *      lent after it has: before PostgreSQL tells the leader that it has ended.
 *  G2  A leader that finds a slot in which something was read and nothing lent has lost: what it
 *      knows may rest on that. Its next attempt has no guests, so that it ends. So is it when a
 *      worker finds no place: it must not read nothing, for PostgreSQL takes that for the end of
 *      the scan.
 *  G3  PostgreSQL has ended all workers of a transaction before it is committed or rolled back. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Of one leader at a time. */
enum { kGuestsMax = 32 };

void rdmacc_guests_init(void); /* from _PG_init under preload only */

/* May a plan of this session count on guests? They need a protocol and stages for which a
 * transaction may have some, and one that has written nothing so far. Not below a savepoint, where
 * an error may be caught, and what its guests have read would be missing. False after a transaction
 * that has missed some (G2), until one commits that has asked this. */
bool rdmacc_may_have_guests(void);

/* The leader, before its workers read, the engine's table first. False: it reads alone. */
bool rdmacc_invite_guests(uint32 table);
/* Workers that begin from now on are none: what the transaction writes is not for guests. */
void rdmacc_invite_no_guests(void);
/* It has invited some, and may still have more. */
bool rdmacc_has_guests(void);

/* A worker: it is a guest from here on, if it was none. False: its leader has invited none. */
bool rdmacc_be_guest(void);

/* A worker's transaction commits: lends, and ends the guest. */
void rdmacc_lend(void);

/* The leader: what guests have lent is among what it has read. Raises a conflict if one has not. */
void rdmacc_borrow(void);

/* Of those that have ended already, at any time. */
void rdmacc_borrow_lent(void);

/* Is there a guest that has lent nothing? Then an error that a worker has raised is of this
 * transaction. */
bool rdmacc_misses_guests(void);

/* The transaction is over, in the engine, too. */
void rdmacc_forget_guests(bool committed);
}
