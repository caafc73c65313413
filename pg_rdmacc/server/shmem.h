/* The control block in PostgreSQL's shared memory: which cluster this server runs and how its
 * nodes are. The supervisor and the checkpointer write it, each field one of them; backends read it
 * without a lock, so every field that changes is one atomic word. A crash restart of the server
 * makes it anew; the cluster's name is kept by the postmaster, so the nodes are found again. */
#pragma once
#include "pg_rdmacc/server/guc.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "port/atomics.h"
#include "storage/condition_variable.h"

#define RDMACC_CLUSTER_NAME_MAX 64

typedef enum RdmaccNodeState {
  RDMACC_NODE_STOPPED = 0,
  RDMACC_NODE_STARTING,
  RDMACC_NODE_RUNNING,
  RDMACC_NODE_REMOTE, /* run by others, and answers */
  RDMACC_NODE_AWAY    /* run by others, and does not */
} RdmaccNodeState;

typedef struct RdmaccNodeStatus {
  pg_atomic_uint32 state; /* RdmaccNodeState */
  pg_atomic_uint32 pid;
  pg_atomic_uint32 restarts;
  pg_atomic_uint64 started; /* TimestampTz of the present process; of others' nodes: since when */
} RdmaccNodeStatus;

typedef struct RdmaccControl {
  pg_atomic_uint32 serving;  /* 1 once every node has been ready in this server's life */
  pg_atomic_uint32 stopping; /* 1 from the supervisor's SIGTERM on */
  pg_atomic_uint32 fresh;    /* 1: an earlier cluster of this data directory is gone */
  pg_atomic_uint32 looks;    /* how often nodes of others have told whether `fresh` is still so */
  pg_atomic_uint32 made;     /* 1: the nodes that run have been started since this block was made */
  pg_atomic_uint32 recovering; /* until the nodes have what is on disk: */
#define RDMACC_RECOVERED 0
#define RDMACC_RECOVERING 1
#define RDMACC_RECOVERY_FAILED 2     /* and is tried again */
#define RDMACC_FOLLOWING 3           /* a standby's: they have rows as of `applied_until` */
  pg_atomic_uint64 applied_until;    /* rows of all WAL before this are there; while following */
  ConditionVariable applied;         /* sessions sleep on it until that grows */
  pg_atomic_uint32 followed;         /* how many processes have made the nodes follow so far */
  pg_atomic_uint32 pauses;           /* 1: nothing is applied while a checkpoint is written */
  pg_atomic_uint32 was_on_disk;      /* rows of an earlier life of this data directory were */
  pg_atomic_uint32 checkpointer_pid; /* 0: none runs */
  pg_atomic_uint32 doubts; /* not 0: a transaction may be in doubt; counts the reasons for it */
  RdmaccNodeStatus nodes[RDMACC_NODES_MAX];
} RdmaccControl;

/* True once _PG_init ran under shared_preload_libraries. */
extern bool rdmacc_preloaded;

/* Raises 55000 with the line for postgresql.conf unless preloaded. */
void rdmacc_require_preload(void);

/* The cluster that backends of this server attach to; static storage. Only to be asked when
 * rdmacc_preloaded. */
const char* rdmacc_cluster_name(void);

extern RdmaccControl* rdmacc_control; /* NULL unless preloaded */

/* The backend that has claimed a worker id of the cluster: told by the backend itself (pid) before
 * it runs transactions, and when it leaves (0). 0 also for ids of nodes, and unused ones. */
void rdmacc_set_worker_pid(int worker, int pid);
int rdmacc_worker_pid(int worker);

/* Draws the cluster's name and asks for the block; from _PG_init under preload only. */
void rdmacc_shmem_init(void);

/* True once the nodes serve, with all rows; false before and while the server stops. */
bool rdmacc_cluster_serving(void);

/* The nodes serve, with whatever rows. */
bool rdmacc_nodes_are_up(void);

/* Rows that are on disk are not in all nodes yet. False on a standby whose nodes follow its WAL. */
bool rdmacc_rows_are_recovering(void);

/* True when tables that existed before this server's start have lost their rows with the nodes
 * of the server's earlier life, since they were in memory only. */
bool rdmacc_cluster_is_fresh(void);

const char* rdmacc_node_state_name(uint32 state);

#ifdef __cplusplus
}
#endif
