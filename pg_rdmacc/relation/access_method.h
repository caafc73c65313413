/* The table access method by name and by its routine: which relations are ours. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/tableam.h"
#include "utils/rel.h"

#define RDMACC_ACCESS_METHOD "rdmacc"

/* True for open relations and for locked ones by OID. */
bool rdmacc_is_ours(Relation relation);
bool rdmacc_relation_is_ours(Oid relation);

/* OID of the access method in this database; InvalidOid without the extension. */
Oid rdmacc_access_method(void);

/* The function that CREATE ACCESS METHOD names; InvalidOid without the extension. */
Oid rdmacc_handler(void);

/* Of the extension's functions; InvalidOid without it. */
Oid rdmacc_extension_schema(void);

/* The access method's callbacks (tableam.h); once, when the library is loaded. */
void rdmacc_set_table_routine(const TableAmRoutine* table_routine);
}
