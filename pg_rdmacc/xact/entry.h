/* Where rdmacc tables cannot be used. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Raises 0A000 in processes, and under settings, in which no transaction can enter the engine. */
void rdmacc_check_entry(void);
}
