#include "pg_rdmacc/xact/row_sharers.h"

#include "pg_rdmacc/server/shared_piece.h"

extern "C" {
#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/backendid.h"
#include "storage/proc.h"
#include "storage/shmem.h"
}

namespace {

constexpr uint32 kRowsMax = 64;

/* Of one session, which alone writes it. What others read of it may be of different transactions:
 * then they wait for one that has ended, and look again. Subtransactions that are rolled back give
 * their locks back. */
struct Shares {
  pg_atomic_uint32 transaction; /* its local id */
  pg_atomic_uint32 count;
  pg_atomic_uint64 rows[kRowsMax]; /* hashes */
};

Shares* all_shares;  /* by BackendId; nullptr: this server does without */
int nests[kRowsMax]; /* of this transaction's: the subtransaction that each goes with */
bool noted;          /* this transaction has some, or had */

Size bytes(void) { return mul_size(sizeof(Shares), add_size(static_cast<Size>(MaxBackends), 1)); }

void attach(void* memory, bool found) {
  all_shares = static_cast<Shares*>(memory);
  for (int i = 0; i <= MaxBackends && !found; i++) {
    pg_atomic_init_u32(&all_shares[i].transaction, InvalidLocalTransactionId);
    pg_atomic_init_u32(&all_shares[i].count, 0);
    for (pg_atomic_uint64& row : all_shares[i].rows) pg_atomic_init_u64(&row, 0);
  }
}

const RdmaccSharedPiece piece = {"rdmacc row sharers", nullptr, bytes, attach};

uint64 hash_of(uint32 table, BridgeBytes key) {
  CHECK(key.data != nullptr && key.size > 0 && key.size <= INT_MAX);
  return hash_bytes_extended(reinterpret_cast<const unsigned char*>(key.data),
                             static_cast<int>(key.size), table);
}

Shares* own(void) {
  if (all_shares == nullptr || MyBackendId == InvalidBackendId) return nullptr;
  CHECK(MyBackendId <= MaxBackends);
  return &all_shares[MyBackendId];
}

void forget(void) {
  if (!noted) return;
  noted = false;
  pg_atomic_write_u32(&own()->count, 0);
}

/* What others miss meanwhile they find at their next look. */
void subtransaction_aborted(int nest) {
  if (!noted) return;
  Shares* shares = own();
  uint32 left = 0;
  const uint32 count = pg_atomic_read_u32(&shares->count);
  CHECK(count <= kRowsMax && nest > 1);
  for (uint32 i = 0; i < count; i++) {
    if (nests[i] >= nest) continue;
    pg_atomic_write_u64(&shares->rows[left], pg_atomic_read_u64(&shares->rows[i]));
    nests[left++] = nests[i];
  }
  pg_atomic_write_u32(&shares->count, left);
}

void subtransaction_committed(int nest) {
  const uint32 count = noted ? pg_atomic_read_u32(&own()->count) : 0;
  for (uint32 i = 0; i < count; i++) nests[i] = Min(nests[i], nest - 1);
}

bool has(Shares* shares, uint64 row) {
  const uint32 count = Min(pg_atomic_read_u32(&shares->count), kRowsMax);
  if (count == 0) return false;
  pg_read_barrier();
  for (uint32 i = 0; i < count; i++) {
    if (pg_atomic_read_u64(&shares->rows[i]) == row) return true;
  }
  return false;
}

}  // namespace

void rdmacc_row_sharers_init(void) { rdmacc_add_shared_piece(&piece); }

void rdmacc_note_shared_row(uint32 table, BridgeBytes key) {
  Shares* shares = own();
  const uint64 row = hash_of(table, key);
  if (shares == nullptr || (noted && has(shares, row))) return;
  const uint32 count = noted ? pg_atomic_read_u32(&shares->count) : 0;
  CHECK(count <= kRowsMax);
  if (count == kRowsMax) return;
  CHECK(MyProc != nullptr && LocalTransactionIdIsValid(MyProc->lxid));
  if (!noted) pg_atomic_write_u32(&shares->transaction, MyProc->lxid);
  pg_atomic_write_u64(&shares->rows[count], row);
  nests[count] = GetCurrentTransactionNestLevel();
  pg_write_barrier();
  pg_atomic_write_u32(&shares->count, count + 1);
  noted = true;
}

VirtualTransactionId rdmacc_sharer_of(uint32 table, BridgeBytes key) {
  if (all_shares == nullptr) return RDMACC_NO_SESSION;
  const uint64 row = hash_of(table, key);
  for (BackendId backend = 1; backend <= MaxBackends; backend++) {
    if (backend == MyBackendId) continue;
    /* First: what is found then is of this transaction, or that one has ended. */
    const uint32 transaction = pg_atomic_read_u32(&all_shares[backend].transaction);
    pg_read_barrier();
    if (has(&all_shares[backend], row)) return {backend, transaction};
  }
  return RDMACC_NO_SESSION;
}

bool rdmacc_others_share_rows(void) {
  if (all_shares == nullptr) return false;
  for (BackendId backend = 1; backend <= MaxBackends; backend++) {
    if (backend == MyBackendId) continue;
    if (pg_atomic_read_u32(&all_shares[backend].count) > 0) return true;
  }
  return false;
}

const RdmaccTransactionPart rdmacc_row_sharers_part = {
    .subtransaction_committed = subtransaction_committed,
    .subtransaction_aborted = subtransaction_aborted,
    .forget = forget};
