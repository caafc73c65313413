#include "pg_rdmacc/server/shared_piece.h"

extern "C" {
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
}

namespace {

constexpr int kPiecesMax = 16;

/* Set in the postmaster, inherited by fork. */
const RdmaccSharedPiece* pieces[kPiecesMax];
int pieces_count;
shmem_request_hook_type previous_request_hook;
shmem_startup_hook_type previous_startup_hook;

void request(void) {
  if (previous_request_hook != nullptr) previous_request_hook();
  for (int i = 0; i < pieces_count; i++) {
    if (pieces[i]->check != nullptr) pieces[i]->check();
    RequestAddinShmemSpace(CACHELINEALIGN(pieces[i]->bytes()));
  }
}

void startup(void) {
  if (previous_startup_hook != nullptr) previous_startup_hook();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  for (int i = 0; i < pieces_count; i++) {
    const Size bytes = pieces[i]->bytes();
    if (bytes == 0) continue;
    bool found = false;
    void* memory = ShmemInitStruct(pieces[i]->name, bytes, &found);
    pieces[i]->attach(memory, found);
  }
  LWLockRelease(AddinShmemInitLock);
}

}  // namespace

void rdmacc_add_shared_piece(const RdmaccSharedPiece* piece) {
  CHECK(piece->bytes != nullptr && piece->attach != nullptr && pieces_count < kPiecesMax);
  if (pieces_count == 0) {
    previous_request_hook = shmem_request_hook;
    shmem_request_hook = request;
    previous_startup_hook = shmem_startup_hook;
    shmem_startup_hook = startup;
  }
  pieces[pieces_count++] = piece;
}
