/* Plans in which nextval(), currval(), lastval(), identity columns, gen_random_uuid(), random() and
 * clock_timestamp() are functions of the extension, which note what is drawn (noted_draws.h). So
 * they are in what the planner puts in the place of functions in SQL. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/plannodes.h"

/* The utility statement, or, where CALL has such functions among its arguments, which have no plan,
 * a copy with the others in their place. */
PlannedStmt* rdmacc_with_noted_draws(PlannedStmt* statement);

void rdmacc_draw_plans_init(void);
}
