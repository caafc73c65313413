/* Joins to a table by its whole primary key: nested loops whose keys are looked up in batches. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

void rdmacc_join_planner_init(void);
}
