/* Catalog changes that have no callback of their own: drops, and what is made on our tables that
 * they cannot have. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
void rdmacc_object_access_init(void);
}
