/* Values out of keys' bytes: the way back of key_codec.h, for types whose bytes hold all of the
 * value. Not so numeric (1.0 and 1.00 are one key), double precision (0 and -0), interval,
 * character(n) and what is hashed. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

/* True when rdmacc_key_decode() takes this (base) type. */
bool rdmacc_key_is_decodable(Oid type);

/* The value at the beginning of *bytes, which is moved behind it; palloc'ed where the type is
 * passed by reference. `inverted`: of a descending column. */
Datum rdmacc_key_decode(Oid type, bool inverted, BridgeBytes* bytes);
}
