/* Over what this server's sessions talk to the nodes, and whose nodes they are: what the settings
 * rdmacc.fabric and rdmacc.cluster* come to. Static storage. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The server is a front end of nodes that others run (rdmacc.cluster). */
bool rdmacc_nodes_are_remote(void);

/* What sessions, and the nodes that the server starts, open. */
const BridgeFabric* rdmacc_fabric_description(void);

/* A cluster of this host by its name alone: enough to look for what it has left. */
void rdmacc_describe_local(const char* kind, const char* name, int nodes, BridgeFabric* fabric);

/* The private folder below the data directory with the files of the server's own cluster, where
 * the fabric needs any. Base backups leave it out. */
bool rdmacc_fabric_needs_files(void);
const char* rdmacc_fabric_folder(void);
const char* rdmacc_fabric_config(void);

/* Refuses settings that contradict each other, and a secret that others may read; FATAL. */
void rdmacc_fabric_check_at_start(void);

#ifdef __cplusplus
}
#endif
