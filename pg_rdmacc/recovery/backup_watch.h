/* Is a base backup under way? Then no checkpoint of rows is removed: the copy has to hold a whole
 * one, whichever of its files are copied first. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* From _PG_init under preload. */
void rdmacc_backup_watch_init(void);
bool rdmacc_backup_runs(void);
}
