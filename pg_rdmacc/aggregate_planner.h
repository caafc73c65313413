/* Aggregates over a whole table, whose rows they take as the nodes hold them. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

void rdmacc_aggregate_planner_init(void);
}
