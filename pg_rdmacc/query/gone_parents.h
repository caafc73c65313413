/* Rows of tables of another kind to which rdmacc tables refer by foreign keys. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/execdesc.h"

/* A query that modifies rows has run, and its triggers are about to look for rows that refer to
 * those which have perhaps gone: what they read of rdmacc tables has to be current
 * (current_reads.h). */
void rdmacc_note_gone_parents(const QueryDesc* query);
}
