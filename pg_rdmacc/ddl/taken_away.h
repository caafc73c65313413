/* Tables that go with what is in them (TRUNCATE, DROP, REFRESH MATERIALIZED VIEW).
 *
 * In a transaction that has read before it had them to itself: under protocols in which it happens
 * then, too, it would take away what transactions that come after it have written since, or read,
 * perhaps in an index alone. Under the others what it has read has to be there still at its end.
 *
 * From transactions that have read them, and have no lock of PostgreSQL's on them any more, for it
 * went with a savepoint. Protocols that validate reads notice that at the commit; where reads are
 * locked, TRUNCATE and REFRESH look for locks (of a view's indexes REFRESH does not, and DROP
 * leaves nothing that could be read otherwise). */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

/* The engine table `id` of a relation that the transaction has locked is about to go: 40001 if it
 * was used since the transaction began. Looks at each row's header, unless nothing was read before.
 * Of a dropped table the indexes are gone already. */
void rdmacc_check_unused(Relation relation, uint32 id);

/* Whether another transaction has locks in a relation that this one has locked, or in its indexes,
 * as of what it has read: then the relation cannot begin anew. (Not seen: shared locks, whose
 * holder is not known.) Looks at each row's header, under protocols that lock what they read. */
bool rdmacc_is_read_by_others(Relation relation, uint32 id);

/* 40001 if it is. */
void rdmacc_check_unread(Relation relation, uint32 id);
}
