/* Keys of types that have no bytes of their own as keys: 128 bits of hash stand for them. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "lib/stringinfo.h"

void rdmacc_key_append_hash(StringInfo out, Oid type, Oid collation, Datum value);
}
