/* Making a checkpoint: rows as they are in memory while all go on, to be completed by the WAL from
 * its redo on. Of tables that did not change, the file of the checkpoint before is kept. */
#pragma once
#include "pg_rdmacc/recovery/manifest.h"

extern "C" {

/* `last`: the checkpoint before, or one without redo; replaced by the new one. `changed_since`: the
 * generation that began with it (0: everything may have changed); replaced as well. False, with
 * nothing changed, when transactions in flight do not end within half a minute, or rows cannot be
 * read for long; other failures are an ERROR. */
bool rdmacc_checkpoint(Manifest* last, uint32* changed_since);

/* Of a standby, whose rows come from WAL that another server has written: by the process that
 * applies it. */
typedef struct RdmaccStandbyCheckpoint {
  XLogRecPtr redo; /* what this WAL and what is behind it commits is applied again */
  void (*note_pause)(bool pauses); /* while a table is written nothing is applied */
  void (*apply_more)(void);        /* between two; nullptr: nothing is */
} RdmaccStandbyCheckpoint;
bool rdmacc_checkpoint_of_standby(Manifest* last, uint32* changed_since,
                                  const RdmaccStandbyCheckpoint* at);
}
