/* Giving the nodes, which have just been made, the rows that are committed. */
#pragma once
#include "pg_rdmacc/recovery/manifest.h"

extern "C" {

/* The newest checkpoint, in *manifest (without redo: there is none, and nothing was ever on disk),
 * and what the WAL has since. An ERROR when something of it is missing or damaged. May be begun
 * anew where it was broken off. */
void rdmacc_recover(Manifest* manifest);
}
