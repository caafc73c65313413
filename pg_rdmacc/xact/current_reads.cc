#include "pg_rdmacc/xact/current_reads.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/guests.h"
#include "pg_rdmacc/xact/pump.h"

namespace {

bool needed;

}  // namespace

void rdmacc_need_current_reads(void) {
  needed = true;
  bridge_need_current_reads();
}

bool rdmacc_needs_current_reads(void) { return needed; }

void rdmacc_check_reads_so_far(void) {
  if (!bridge_txn_active() || !bridge_txn_touched()) return;
  CHECK(!bridge_busy() && !bridge_prepared()); /* from then on nothing may fail any more */
  rdmacc_borrow();                             /* what parallel workers have read */
  bridge_start_check_reads();
  rdmacc_pump();
  rdmacc_check("could not check what was read", nullptr);
}

void rdmacc_check_current_reads(void) {
  if (needed) rdmacc_check_reads_so_far();
}

void rdmacc_forget_current_reads(void) { needed = false; }
