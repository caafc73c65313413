/* Tables that go with what is in them (TRUNCATE, DROP, REFRESH MATERIALIZED VIEW) in a transaction
 * that has read before it had them to itself. Under protocols in which it happens then, too, it
 * would take away what transactions that come after it have written since, or read, perhaps in an
 * index alone. Under the others what it has read has to be there still at its end. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

/* The engine table `id` of a relation that the transaction has locked is about to go: 40001 if it
 * was used since the transaction began. Looks at each row's header, unless nothing was read before.
 * Of a dropped table the indexes are gone already. */
void rdmacc_check_unused(Relation relation, uint32 id);
}
