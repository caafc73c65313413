/* Statistics of all sessions of the server: a part of engine_bridge.h, which says what holds for
 * these functions, too. Texts are static; protocols are numbers. */
#pragma once
#include "engine/api/plain_data.h"

typedef struct BridgeStageStat {
  int protocol;
  const char* stage;
  const char* primitive;
  uint64_t count;
  double mean_us, p50_us, p99_us;
} BridgeStageStat;

typedef struct BridgeAbortStat {
  int protocol;
  const char* reason;
  uint64_t count;
} BridgeAbortStat;

typedef struct BridgeRetryStat {
  int protocol;
  uint64_t retries, given_up;
  uint64_t replayed_statements, replay_us, replays_differed;
} BridgeRetryStat;

typedef struct BridgeProtocolStat {
  int protocol;
  uint64_t transactions, committed;
  rdmacc::VerbCounters verbs;
  uint64_t nodes, with_nodes;            /* of those that committed: added up; that have any */
  uint64_t stage_ns, committed_stage_ns; /* that stages took: of all; of those that committed */
} BridgeProtocolStat;

typedef struct BridgePlanStat {
  int protocol;
  uint16_t code; /* without the stages that the protocol does not have */
  uint64_t transactions, committed, explored;
} BridgePlanStat;

/* Memory that the server gives: bytes() of it, aligned to 64, made by format() once and named to
 * every process that is to use it. */
size_t bridge_stats_bytes(void);
void bridge_stats_format(void* memory);
void bridge_stats_use(void* memory);
void bridge_stats_reset(void);
/* Rows of the views, as many as there are but at most `max`; how many were filled in. */
#define BRIDGE_STAT_STAGES_MAX 256
#define BRIDGE_STAT_ABORTS_MAX 512
#define BRIDGE_STAT_PLANS_MAX 4096
size_t bridge_stat_stages(BridgeStageStat* out, size_t max);
size_t bridge_stat_aborts(BridgeAbortStat* out, size_t max);
size_t bridge_stat_plans(BridgePlanStat* out, size_t max); /* those that were used */
#define BRIDGE_STAT_PROTOCOLS_MAX 16
size_t bridge_stat_protocols(BridgeProtocolStat* out, size_t max); /* each */
#define BRIDGE_STAT_RETRIES_MAX 16
size_t bridge_stat_retries(BridgeRetryStat* out, size_t max); /* of each protocol */
/* A statement has lost under the protocol: it is run again, or not any more. */
void bridge_stat_add_retry(int protocol, bool gives_up);
void bridge_stat_add_replay(int protocol, uint64_t statements, uint64_t us, bool differed);
