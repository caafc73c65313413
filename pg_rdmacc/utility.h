/* The hook around utility statements. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
void rdmacc_utility_init(void);
}
