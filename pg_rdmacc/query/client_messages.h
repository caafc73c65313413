/* PostgreSQL's functions for the messages of its protocol. What their header declares for GSSAPI,
 * whose headers another package has, is left out: nothing here looks at a connection's fields but
 * its socket, the first. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

#undef ENABLE_GSS

extern "C" {
#include "libpq/libpq-be.h"
#include "libpq/libpq.h"
#include "libpq/pqformat.h"
}
