#include "pg_rdmacc/xact/guests.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/server/shared_piece.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/entry.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/pump.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/backendid.h"
#include "storage/dsm.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
}

namespace {

constexpr int kSegmentsMax = 64; /* that one transaction has borrowed */
constexpr int64 kRefusedUs =
    60'000'000; /* for so long a session whose workers find no place has none */

enum SlotState : uint32 { kFree, kReads, kLent };

struct Slot {
  pg_atomic_uint32 state;
  dsm_handle memory; /* kLent: what it has read */
  Size bytes;
};

struct Leader {
  rdmacc::HostTicket ticket; /* ctts 0: it has invited none */
  bool open;                 /* or invites no more */
  pg_atomic_uint32 refused;  /* a worker has found no place */
  Slot slots[kGuestsMax];
};

Leader* leaders; /* by BackendId */

/* A leader's: */
bool alone;           /* one that invited them has missed some */
bool wanted;          /* and this one would have invited some */
int64 alone_until_us; /* workers have found no place */
List* borrowed;       /* segments, in TopMemoryContext */
/* A worker's: */
Slot* own;

Size leaders_bytes(void) {
  return mul_size(sizeof(Leader), add_size(static_cast<Size>(MaxBackends), 1));
}

void attach_leaders(void* memory, bool found) {
  leaders = static_cast<Leader*>(memory);
  for (int i = 0; i <= MaxBackends && !found; i++) {
    leaders[i].ticket = {};
    leaders[i].open = false;
    pg_atomic_init_u32(&leaders[i].refused, 0);
    for (Slot& slot : leaders[i].slots) pg_atomic_init_u32(&slot.state, kFree);
  }
}

const RdmaccSharedPiece piece = {"rdmacc guests", nullptr, leaders_bytes, attach_leaders};

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
  pg_memory_barrier();
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

/* The leader reads alone the next time. */
[[noreturn]] void refuse_place(Leader* leader) {
  pg_atomic_write_u32(&leader->refused, 1);
  ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                  errmsg("could not read rdmacc tables in a parallel worker"),
                  errdetail("There is no place for one more session that uses them."),
                  errhint("See rdmacc.max_workers. The transaction will not use workers if "
                          "retried.")));
}

/* False: no more sessions may use the cluster. */
bool find_place(void) {
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
    const Size bytes = own->bytes;
    dsm_segment* segment = dsm_create(bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
    if (segment != nullptr && bridge_lend(dsm_segment_address(segment))) {
      dsm_pin_segment(segment);
      own->memory = dsm_segment_handle(segment);
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
  rdmacc_add_shared_piece(&piece);
}

bool rdmacc_may_have_guests(void) {
  if (leaders == nullptr || rdmacc_reads_as_stored() || rdmacc_needs_current_reads()) return false;
  if (GetCurrentTransactionNestLevel() > 1 || rdmacc_misses_guests()) return false;
  if (IsInParallelMode()) return false; /* a plan within one that has guests */
  if (list_length(borrowed) >= kSegmentsMax || bridge_txn_has_writes()) return false;
  if (rdmacc_stages_auto ||
      !bridge_may_host(rdmacc_protocol_to_begin(rdmacc_on_standby()), rdmacc_stages_code)) {
    return false;
  }
  wanted = true;
  return !alone && (alone_until_us == 0 || rdmacc_now_us() >= alone_until_us);
}

bool rdmacc_invite_guests(uint32 table) {
  CHECK(!IsParallelWorker());
  if (!rdmacc_may_have_guests()) return false;
  rdmacc_borrow_lent(); /* those of before make room */
  rdmacc_invite_no_guests();
  rdmacc_enter();
  rdmacc::HostTicket ticket;
  bridge_start_host(table, &ticket);
  rdmacc_pump();
  rdmacc_check("could not share a scan", nullptr);
  if (ticket.ctts == 0) return false;
  Leader* leader = leader_of(MyBackendId);
  leader->ticket = ticket; /* before PostgreSQL starts workers */
  leader->open = true;
  return true;
}

void rdmacc_invite_no_guests(void) {
  if (Leader* leader = inviting()) leader->open = false;
}

bool rdmacc_has_guests(void) {
  const Leader* leader = inviting();
  return leader != nullptr && leader->open;
}

bool rdmacc_be_guest(void) {
  CHECK(IsParallelWorker());
  if (own != nullptr) return bridge_txn_active();
  if (leaders == nullptr || ParallelLeaderBackendId == InvalidBackendId) return false;
  Leader* leader = leader_of(ParallelLeaderBackendId);
  if (leader->ticket.ctts == 0 || !leader->open) return false;
  if (!find_place()) refuse_place(leader);
  own = take_slot(leader);
  if (own == nullptr) refuse_place(leader);
  bridge_start_guest(&leader->ticket);
  rdmacc_pump();
  rdmacc_check("could not share a scan", nullptr);
  return true;
}

void rdmacc_lend(void) {
  if (own == nullptr || !bridge_txn_active()) return;
  SlotState end = kReads;
  if (bridge_bytes_to_lend(&own->bytes)) {
    const bool nothing = own->bytes == 0;
    if (nothing || lend_in_segment()) end = nothing ? kFree : kLent;
  }
  pg_write_barrier();
  pg_atomic_write_u32(&own->state, end);
}

void rdmacc_borrow_lent(void) {
  if (Leader* leader = inviting()) borrow_lent(leader);
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
  if (pg_atomic_read_u32(&leader->refused) != 0) return true;
  for (Slot& slot : leader->slots) {
    if (pg_atomic_read_u32(&slot.state) == kReads) return true;
  }
  return false;
}

void rdmacc_forget_guests(bool committed) {
  own = nullptr;
  if (rdmacc_misses_guests()) {
    alone = true;
  } else if (committed && wanted) {
    alone = false;
  }
  wanted = false;
  Leader* leader = inviting();
  if (leader == nullptr) return;
  leader->ticket = {};
  leader->open = false;
  const bool refused = pg_atomic_exchange_u32(&leader->refused, 0) != 0;
  alone_until_us = refused ? rdmacc_now_us() + kRefusedUs : 0;
  for (Slot& slot : leader->slots) {
    if (pg_atomic_read_u32(&slot.state) == kLent) dsm_unpin_segment(slot.memory);
    pg_atomic_write_u32(&slot.state, kFree);
  }
  ListCell* cell;
  foreach (cell, borrowed) dsm_detach(static_cast<dsm_segment*>(lfirst(cell)));
  list_free(borrowed);
  borrowed = NIL;
}
