/* Whether what the executor makes of a plan may be kept for the next execution of it. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/* A row that is looked up by its key (also FOR UPDATE and the like), or updated or deleted there;
 * an INSERT of one row. Of tables of ours, without subqueries, and with PostgreSQL's own functions
 * only: of others the executor may remember what is good for one transaction. */
bool rdmacc_plan_is_keepable(const PlannedStmt* plan);

/* Neither has what the executor has made of such a plan anything that PostgreSQL sets up for one
 * execution: triggers, indexes on expressions, checks. `top` is the plan's. */
bool rdmacc_executor_is_keepable(const EState* state, const PlanState* top);
}
