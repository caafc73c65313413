/* The hook around utility statements. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
/* Installs the hooks of all files about DDL. */
void rdmacc_ddl_init(void);
void rdmacc_option_statements_init(void);

/* True while a utility statement is being run. */
bool rdmacc_in_utility(void);
}
