/* The engine tables that this server has made, in whichever of its databases. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* All of them, palloc'ed; their number. -1: the nodes do not say. */
int rdmacc_own_tables(BridgeTable** own);

/* CREATE DATABASE copies files, and so none of our rows: 0A000 for a template that has tables of
 * ours, whose copies nobody could use. Nothing while nodes are away. */
void rdmacc_check_template(const CreatedbStmt* statement);
}
