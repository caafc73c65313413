#include "pg_rdmacc/xact/guests.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/pump.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/parallel.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "optimizer/optimizer.h"
#include "storage/backendid.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
}

namespace {

constexpr int kGuestsMax = 16; /* of one leader at a time; what comes later reads nothing */

enum SlotState : uint32 { kFree, kReads, kLent };

struct Slot {
  pg_atomic_uint32 state;
  dsm_handle memory; /* kLent: what it has read */
  Size bytes;
};

struct Leader {
  rdmacc::HostTicket ticket; /* ctts 0: it has invited none */
  Slot slots[kGuestsMax];
};

Leader* leaders; /* by BackendId */
shmem_request_hook_type previous_request_hook;
shmem_startup_hook_type previous_startup_hook;

/* A leader's: */
bool alone;     /* the last one that did has lost */
List* borrowed; /* segments, in TopMemoryContext */
/* A worker's: */
Slot* own;

Size leaders_bytes(void) {
  return mul_size(sizeof(Leader), add_size(static_cast<Size>(MaxBackends), 1));
}

void request_shmem(void) {
  if (previous_request_hook != nullptr) previous_request_hook();
  RequestAddinShmemSpace(leaders_bytes());
}

void startup_shmem(void) {
  if (previous_startup_hook != nullptr) previous_startup_hook();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found = false;
  leaders = static_cast<Leader*>(ShmemInitStruct("rdmacc guests", leaders_bytes(), &found));
  if (!found) {
    for (int i = 0; i <= MaxBackends; i++) {
      leaders[i].ticket = {};
      for (Slot& slot : leaders[i].slots) pg_atomic_init_u32(&slot.state, kFree);
    }
  }
  LWLockRelease(AddinShmemInitLock);
}

Leader* leader_of(BackendId backend) {
  CHECK(leaders != nullptr && backend > 0 && backend <= MaxBackends);
  return &leaders[backend];
}

/* Of this transaction; NULL: it has invited none. */
Leader* inviting(void) {
  if (leaders == nullptr || MyBackendId <= 0 || IsParallelWorker()) return nullptr;
  Leader* leader = leader_of(MyBackendId);
  return leader->ticket.ctts != 0 ? leader : nullptr;
}

Slot* take_slot(Leader* leader) {
  for (Slot& slot : leader->slots) {
    uint32 free = kFree;
    if (pg_atomic_compare_exchange_u32(&slot.state, &free, kReads)) return &slot;
  }
  return nullptr;
}

void borrow_from(Slot* slot) {
  dsm_segment* segment = dsm_attach(slot->memory);
  if (segment == nullptr) elog(ERROR, "what a parallel worker has read is gone");
  dsm_pin_mapping(segment);
  const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
  borrowed = lappend(borrowed, segment);
  MemoryContextSwitchTo(previous);
  dsm_unpin_segment(slot->memory);
  const Size bytes = slot->bytes;
  pg_atomic_write_u32(&slot->state, kFree);
  bridge_borrow(dsm_segment_address(segment), bytes);
  rdmacc_note_failed_command();
  rdmacc_check("could not take over what parallel workers have read", nullptr);
}

void borrow_lent(Leader* leader) {
  for (Slot& slot : leader->slots) {
    if (pg_atomic_read_u32(&slot.state) != kLent) continue;
    pg_read_barrier();
    borrow_from(&slot);
  }
}

/* No more sessions may use the cluster: the leader reads what a worker does not, if it reads. */
bool find_place(void) {
  if (!parallel_leader_participation) {
    rdmacc_ensure_attached();
    return true;
  }
  const MemoryContext context = CurrentMemoryContext;
  volatile bool found = false;
  PG_TRY();
  {
    rdmacc_ensure_attached();
    found = true;
  }
  PG_CATCH();
  {
    if (geterrcode() != ERRCODE_TOO_MANY_CONNECTIONS) PG_RE_THROW();
    MemoryContextSwitchTo(context);
    FlushErrorState();
  }
  PG_END_TRY();
  return found;
}

/* False: there is no room for it. */
bool lend_in_segment(void) {
  const MemoryContext context = CurrentMemoryContext;
  volatile bool lent = false;
  PG_TRY();
  {
    const Size bytes = bridge_bytes_to_lend();
    dsm_segment* segment = dsm_create(bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
    if (segment != nullptr && bridge_lend(dsm_segment_address(segment))) {
      dsm_pin_segment(segment);
      own->memory = dsm_segment_handle(segment);
      own->bytes = bytes;
      lent = true;
    }
    if (segment != nullptr) dsm_detach(segment);
  }
  PG_CATCH();
  {
    /* Of /dev/shm, as of anything that the leader can do without. */
    MemoryContextSwitchTo(context);
    FlushErrorState();
  }
  PG_END_TRY();
  return lent;
}

}  // namespace

void rdmacc_guests_init(void) {
  CHECK(leaders == nullptr);
  previous_request_hook = shmem_request_hook;
  shmem_request_hook = request_shmem;
  previous_startup_hook = shmem_startup_hook;
  shmem_startup_hook = startup_shmem;
}

bool rdmacc_may_have_guests(void) {
  if (leaders == nullptr || alone || rdmacc_reads_as_stored() || rdmacc_needs_current_reads()) {
    return false;
  }
  return bridge_may_host(rdmacc_protocol, rdmacc_stages_code) && !bridge_txn_has_writes();
}

bool rdmacc_invite_guests(uint32 table) {
  CHECK(!IsParallelWorker());
  if (!rdmacc_may_have_guests()) return false;
  if (Leader* leader = inviting()) borrow_lent(leader); /* those of before make room */
  rdmacc_enter();
  rdmacc::HostTicket ticket;
  bridge_start_host(table, &ticket);
  rdmacc_pump();
  rdmacc_check("could not share a scan", nullptr);
  if (ticket.ctts == 0) return false;
  leader_of(MyBackendId)->ticket = ticket; /* before PostgreSQL starts workers */
  return true;
}

bool rdmacc_has_guests(void) { return inviting() != nullptr; }

bool rdmacc_be_guest(void) {
  CHECK(IsParallelWorker());
  if (own != nullptr) return bridge_txn_active();
  if (leaders == nullptr || ParallelLeaderBackendId == InvalidBackendId) return false;
  Leader* leader = leader_of(ParallelLeaderBackendId);
  if (leader->ticket.ctts == 0) return false;
  if (!find_place()) return false;
  own = take_slot(leader);
  if (own == nullptr && !parallel_leader_participation) {
    ereport(ERROR, (errcode(ERRCODE_TOO_MANY_CONNECTIONS),
                    errmsg("too many parallel workers read rdmacc tables for one transaction"),
                    errhint("Set parallel_leader_participation on.")));
  }
  if (own == nullptr) return false;
  bridge_start_guest(&leader->ticket);
  rdmacc_pump();
  rdmacc_check("could not share a scan", nullptr);
  return true;
}

void rdmacc_lend(void) {
  if (own == nullptr) return;
  const bool lent = bridge_txn_active() && lend_in_segment();
  pg_write_barrier();
  if (lent) pg_atomic_write_u32(&own->state, kLent);
}

void rdmacc_borrow(void) {
  Leader* leader = inviting();
  if (leader == nullptr) return;
  borrow_lent(leader);
  if (!rdmacc_misses_guests()) return;
  rdmacc_note_conflict(Max(bridge_txn_protocol(), 0));
  ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                  errmsg("could not serialize access due to a parallel worker that has failed"),
                  errdetail("What it has read of rdmacc tables is not known."),
                  errhint("The transaction might succeed if retried: it will not use workers.")));
}

bool rdmacc_misses_guests(void) {
  Leader* leader = inviting();
  if (leader == nullptr) return false;
  for (Slot& slot : leader->slots) {
    if (pg_atomic_read_u32(&slot.state) == kReads) return true;
  }
  return false;
}

void rdmacc_forget_guests(bool committed) {
  own = nullptr;
  Leader* leader = inviting();
  alone = !committed && (alone || leader != nullptr);
  if (leader == nullptr) return;
  leader->ticket = {};
  for (Slot& slot : leader->slots) {
    if (pg_atomic_read_u32(&slot.state) == kLent) dsm_unpin_segment(slot.memory);
    pg_atomic_write_u32(&slot.state, kFree);
  }
  ListCell* cell;
  foreach (cell, borrowed) dsm_detach(static_cast<dsm_segment*>(lfirst(cell)));
  list_free(borrowed);
  borrowed = NIL;
}
