/* DATA_DIRECTORY/rdmacc_cluster: what a supervisor has to know of the one before it. After a crash
 * restart of the server it finds the nodes that still run; after a stop, or the death of the
 * postmaster, it removes what is left of the earlier cluster. */
#pragma once
#include "pg_rdmacc/server/node_process.h"
#include "pg_rdmacc/server/shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RDMACC_FABRIC_NAME_MAX 15

typedef struct ClusterFile {
  char name[RDMACC_CLUSTER_NAME_MAX + 1];
  ProcessIdentity postmaster; /* that the cluster belongs to */
  bool stopped;               /* ended cleanly: no process and no memory is left */
  bool fresh;                 /* see rdmacc_cluster_is_fresh() */
  bool on_disk;               /* there have been rows in checkpoints and the WAL */
  char fabric[RDMACC_FABRIC_NAME_MAX + 1];
  uint64 stamp; /* of nodes that others run (bridge_watch_memory()); 0: they are this server's */
  int nodes;
  ProcessIdentity processes[RDMACC_NODES_MAX];
  uint32 restarts[RDMACC_NODES_MAX];
} ClusterFile;

/* False when there is none, or it cannot be understood (which is logged). */
bool cluster_file_read(ClusterFile* file);
/* Replaces the file; a failure is an ERROR. */
void cluster_file_write(const ClusterFile* file);

#ifdef __cplusplus
}
#endif
