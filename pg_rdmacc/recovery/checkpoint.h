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
}
