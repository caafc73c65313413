/* DATA_DIRECTORY/pg_rdmacc: checkpoints of the rows of rdmacc tables. A checkpoint is a manifest,
 * REDO.manifest, and the files that it names, TABLE.REDO.rows, each of this checkpoint or, of a
 * table that did not change, of an earlier one. All of them are written once, and proven by
 * checksums, so that a copy of the folder, at whatever moment it is taken, has whole checkpoints.
 */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/xlogdefs.h"

#define RDMACC_CHECKPOINT_FOLDER "pg_rdmacc"

typedef struct ManifestTable {
  rdmacc::ListedTable table;
  XLogRecPtr file; /* redo of the checkpoint that wrote its file */
  uint64 rows;
  uint64 bytes;
} ManifestTable;

typedef struct Manifest {
  uint64 system_id;
  XLogRecPtr redo; /* replay begins here; InvalidXLogRecPtr: there is no checkpoint */
  XLogRecPtr end;  /* rows of no later record are in it */
  uint32 timeline; /* of `end` */
  uint32 count;
  ManifestTable* tables;
} Manifest;

void rdmacc_table_file_path(char* path, uint32 table, XLogRecPtr redo);

/* The newest whole checkpoint of this system that ends on this server's history, no later than
 * `until` (InvalidXLogRecPtr: any). False when there is none. */
bool rdmacc_manifest_read(XLogRecPtr until, Manifest* manifest);
/* A failure is an ERROR; afterwards it is on disk. */
void rdmacc_manifest_write(const Manifest* manifest);
/* Removes the files that no checkpoint from `manifest` on needs. */
void rdmacc_manifest_remove_older(const Manifest* manifest);
/* Removes what a checkpoint that has failed, or was killed, has left. None may be under way. */
void rdmacc_manifest_remove_unfinished(void);
/* Is there anything? */
bool rdmacc_checkpoints_exist(void);
}
