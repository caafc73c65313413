/* One node under the supervisor: a small state machine that never blocks. Used by the supervisor
 * process alone. */
#pragma once
#include "pg_rdmacc/server/cluster_file.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "utils/timestamp.h"

typedef struct SupervisedNode {
  int number;
  ProcessIdentity process; /* pid 0: not running */
  bool child;              /* started by this supervisor, not adopted from the one before */
  int ready_fd;            /* -1: none */
  int go_fd;               /* of a child that waits to be let go, -1: none */
  bool ready;
  uint32 restarts;
  int failures; /* ends in a row that came soon after the start */
  TimestampTz started;
  TimestampTz next_start; /* not before */
} SupervisedNode;

void supervised_node_init(SupervisedNode* node, int number);
/* Takes over a process that an earlier supervisor started; false when it has ended. */
bool supervised_node_adopt(SupervisedNode* node, ProcessIdentity process, uint32 restarts);
/* Its process waits until it is written down (the cluster file), and then is let go. */
void supervised_node_let_go(SupervisedNode* node);
/* Starts it: with the cluster's shared memory still to be made (node 0 does) or on what is there.
 * It begins when it is let go. A failure is logged and tried again later by step(). */
void supervised_node_start(SupervisedNode* node, bool create_cluster);
/* Looks after it: notes that it is ready or has ended, starts it again when due. True when its
 * process or state changed. */
bool supervised_node_step(SupervisedNode* node);
/* True when there is no process (any more). */
bool supervised_node_ended(SupervisedNode* node);

#ifdef __cplusplus
}
#endif
