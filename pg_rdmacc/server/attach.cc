#include "pg_rdmacc/server/attach.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/server/remote_nodes.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/server/standstill.h"

extern "C" {
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
}

namespace {

constexpr int64 kAttachWaitUsMax = 10'000'000;
constexpr int64 kRemoteWaitUsMax =
    5'000'000; /* this server does not start them: no use to wait longer */
constexpr long kPollUs = 20'000;

bool again;
bool recovers;
bool exit_registered;
bool joined; /* attached, and all that belongs to it is done */
uint32 epoch;
void (*at_exit_first)(void);

void detach_at_exit(int, Datum) {
  if (!bridge_attached()) return;
  if (at_exit_first != nullptr) at_exit_first();
  rdmacc_leave_cluster();
}

bool local_nodes_serve(void) { return recovers ? rdmacc_nodes_are_up() : rdmacc_cluster_serving(); }

bool interrupted(void) { return INTERRUPTS_PENDING_CONDITION(); }

/* `why` may be NULL. */
void wait_for_nodes(int64 deadline_us, const char* why) {
  CHECK(!bridge_txn_active()); /* no locks are held that long */
  const bool failed = rdmacc_control != nullptr && !recovers &&
                      pg_atomic_read_u32(&rdmacc_control->recovering) == RDMACC_RECOVERY_FAILED;
  if (rdmacc_now_us() >= deadline_us || failed) {
    if (rdmacc_nodes_are_remote()) rdmacc_raise_nodes_away(why);
    if (rdmacc_rows_are_recovering() && !recovers) {
      ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW),
                      failed ? errmsg("the rows of rdmacc tables could not be recovered")
                             : errmsg("the rows of rdmacc tables are being recovered"),
                      errhint("See rdmacc.stat_durability, and the server log.")));
    }
    ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW), errmsg("the rdmacc nodes are not up yet"),
                    errhint("See the server log for what the rdmacc supervisor reports.")));
  }
  CHECK_FOR_INTERRUPTS();
  pg_usleep(kPollUs);
}

}  // namespace

int64 rdmacc_now_us(void) {
  instr_time now;
  INSTR_TIME_SET_CURRENT(now);
  return static_cast<int64>(INSTR_TIME_GET_MICROSEC(now));
}

void rdmacc_at_exit(void (*end_transaction)(void)) {
  CHECK(at_exit_first == nullptr && end_transaction != nullptr);
  at_exit_first = end_transaction;
}

void rdmacc_attach_to_recover(void) { recovers = true; }

uint32 rdmacc_attach_epoch(void) { return epoch; }

void rdmacc_attach_again(void) { again = true; }

/* In this order: the worker id may be another backend's at once. */
void rdmacc_leave_cluster(void) {
  joined = false;
  rdmacc_set_worker_pid(bridge_worker_id(), 0);
  bridge_detach();
}

void rdmacc_ensure_attached(void) {
  if (again && bridge_attached() && !bridge_txn_active()) rdmacc_leave_cluster();
  if (bridge_attached() && joined) return;
  /* An interrupt, or the deadline, has ended the last wait below. */
  if (bridge_attached()) rdmacc_leave_cluster();
  rdmacc_require_preload();
  const BridgeFabric* fabric = rdmacc_fabric_description();
  const bool remote = rdmacc_nodes_are_remote();
  const int64 deadline_us = rdmacc_now_us() + (remote ? kRemoteWaitUsMax : kAttachWaitUsMax);
  /* A remote node 0 that does not answer is asked here, for its reason. */
  while (remote ? rdmacc_node_answers(0) && !rdmacc_remote_nodes_serve() : !local_nodes_serve()) {
    wait_for_nodes(deadline_us, nullptr);
  }
  if (!exit_registered) before_shmem_exit(detach_at_exit, 0);
  exit_registered = true;
  /* What has committed elsewhere has to fit. */
  const uint64 write_set_bytes_max =
      recovers ? UINT64_MAX : static_cast<uint64>(rdmacc_max_write_set_mb) << 20;
  while (!bridge_attach(fabric, static_cast<uint32>(rdmacc_effective_replicas()),
                        write_set_bytes_max, interrupted, rdmacc_standstill_of)) {
    const BridgeError error = *bridge_error();
    if (remote && error.code == rdmacc::Code::kInvalidArgument) rdmacc_raise_refused(error.message);
    if (error.code != rdmacc::Code::kUnavailable && error.code != rdmacc::Code::kTimeout &&
        error.code != rdmacc::Code::kNotFound) {
      rdmacc_check("could not attach to the rdmacc nodes", nullptr);
    }
    wait_for_nodes(deadline_us, error.message);
  }
  /* Node 0 has let us in. Tables are looked for once it is known whether it lost their rows. */
  while (remote && !rdmacc_remote_nodes_serve()) {
    wait_for_nodes(deadline_us, nullptr);
  }
  CHECK(bridge_attached() && !bridge_txn_active());
  rdmacc_set_worker_pid(bridge_worker_id(), MyProcPid);
  joined = true;
  again = false;
  epoch++;
}
