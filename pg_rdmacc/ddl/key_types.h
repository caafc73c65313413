/* Composite types, and row types of tables, that are part of a key: what a key has of a value is
 * computed from all attributes, so these stay what they are as long as rows have such keys. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* The relation has got an attribute, or is about to lose one. 0A000: a key of an rdmacc table has
 * values of its row type, in an array, a domain, a range or another composite, too. */
void rdmacc_refuse_change_of_key_type(Oid relation);
}
