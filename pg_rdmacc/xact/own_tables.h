/* The engine tables that this server has made, in whichever of its databases. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* All of them, also of those of which only some nodes have a part, palloc'ed; their number. -1: the
 * nodes do not say. */
int rdmacc_own_tables(rdmacc::ListedTable** own);

/* The first part of an engine table's name; variants of one relfilenode differ in it. */
uint64 rdmacc_system_name(uint64 variant);
/* Has a table of that name been made by this server? */
bool rdmacc_is_own_name(uint64 system_name);

/* Drops those that no catalog knows: of databases that are gone, of transactions that a crash has
 * aborted, and what a crash kept from being dropped. From the resolver, when nothing is in doubt.
 */
void rdmacc_drop_orphans(void);

/* CREATE DATABASE copies files, and so none of our rows: 0A000 for a template that has tables of
 * ours, whose copies would be of no use. Nothing while nodes are away. */
void rdmacc_check_template(const CreatedbStmt* statement);
}
