/* The settings rdmacc.*: definitions of the variables that pg_rdmacc.h declares, and those that
 * only the server side (supervisor, control block) reads. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RDMACC_NODES_MAX 64
#define RDMACC_NODE_THREADS_MAX 64

extern int rdmacc_node_threads;   /* of each node */
extern char* rdmacc_node_program; /* "": look beside the server's programs and libraries */
extern int rdmacc_huge_pages;     /* 1 = try, 0 = off */
extern char* rdmacc_verbs_device; /* of the verbs fabric, with the two below */
extern int rdmacc_verbs_port;
extern int rdmacc_verbs_gid_index;
extern char* rdmacc_fabric;  /* over what sessions and nodes talk: shm, tcp, … */
extern char* rdmacc_cluster; /* addresses of nodes that others run; "": the server's own */
extern char* rdmacc_cluster_name_setting;
extern char* rdmacc_cluster_secret_file;

/* Defines every setting. The server-side ones only under shared_preload_libraries: PostgreSQL
 * refuses to add PGC_POSTMASTER settings later. */
void rdmacc_guc_init(bool preloaded);

/* guc_sampled.cc: those that a transaction samples at its first engine access. */
void rdmacc_guc_define_sampled(void);

/* guc_at_start.cc. Before settings are defined: which of them the configuration names; and after:
 * FATAL for one of these that was refused. */
void rdmacc_guc_note_configured(void);
void rdmacc_guc_refuse_invalid(void);

/* Refuses combinations that one check hook cannot see; FATAL at server start. */
void rdmacc_guc_check_at_start(void);

/* Worker ids of the cluster: rdmacc.max_workers with -1 resolved, and the nodes' threads. Known
 * once MaxBackends is. Of nodes that others run: their workers_max, which max_workers names. */
int rdmacc_worker_ids(void);

/* rdmacc.replicas, at most nodes - 1 when it was never set. */
int rdmacc_effective_replicas(void);

#ifdef __cplusplus
}
#endif
