/* Giving the nodes, which have just been made, the rows that are committed. */
#pragma once
#include "pg_rdmacc/recovery/manifest.h"

extern "C" {

/* The newest checkpoint, in *manifest, and what the WAL has since. False: there is none, and
 * nothing was ever on disk; then that was all. An ERROR when something is missing or damaged. May
 * be begun anew where it was broken off. */
bool rdmacc_recover_begin(Manifest* manifest);
/* On a standby, between the two, for its log and its times: sessions read from now on; and it is
 * promoted, what is left of the WAL comes now. */
void rdmacc_recover_to_follow(void);
void rdmacc_recover_goes_on(void);
/* The nodes have all rows: says so. What has not committed in this WAL never will. */
void rdmacc_recover_end(void);
}
