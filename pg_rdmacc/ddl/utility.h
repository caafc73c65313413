/* Hooks around statements and changes of the catalog: see utility.cc. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* Installs the hooks of all files about DDL. */
void rdmacc_ddl_init(void);
void rdmacc_option_statements_init(void);

/* ---- Catalog changes that have no callback of their own: drops, and what is made on our tables
 * that they cannot have. */
void rdmacc_object_access_init(void);

/* ---- Publications: changes of rdmacc rows are not in the write-ahead log. */

/* CREATE PUBLICATION and ALTER PUBLICATION: 0A000 when a table of ours is named, or is a partition
 * or child of one that is; a WARNING when some are among all tables, or those of a schema. */
void rdmacc_check_publication(const Node* statement);

/* Behind CREATE TABLE and ALTER TABLE: 0A000 when a table that it has made, attached or converted
 * is ours, or has partitions that are, and a publication names it or a table above it. */
void rdmacc_check_if_published(const Node* statement);
}
