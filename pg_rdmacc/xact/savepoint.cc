#include "pg_rdmacc/xact/savepoint.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "utils/memutils.h"
}

namespace {

/* One engine savepoint stands for all levels up to `nest` that have no own one below. */
struct Savepoint {
  int nest;
  uint32 level;
};

/* Subtransaction ids from `first` to `last` were rolled back. */
struct AbortedRange {
  SubTransactionId first;
  SubTransactionId last;
};

constexpr int kInitialCapacity = 16;

Savepoint* savepoints; /* in TopTransactionContext; innermost last */
int savepoint_count;
int savepoint_capacity;
AbortedRange* aborted; /* in TopTransactionContext; apart from each other, in order */
int aborted_count;
int aborted_capacity;
SubTransactionId newest_subtransaction;

template <typename Element>
void reserve(Element** elements, int* capacity, int count) {
  if (count < *capacity) return;
  const int wanted = Max(kInitialCapacity, *capacity * 2);
  const Size bytes = sizeof(Element) * static_cast<Size>(wanted);
  *elements =
      static_cast<Element*>(*elements == nullptr ? MemoryContextAlloc(TopTransactionContext, bytes)
                                                 : repalloc(*elements, bytes));
  *capacity = wanted;
}

/* Row locks of what was rolled back. No error may come out of here: one is the transaction's, at
 * its next use of the engine. */
void let_go(void) {
  if (!bridge_has_to_let_go()) return;
  bridge_start_let_go();
  if (rdmacc_pump_uninterrupted() && bridge_error()->code != rdmacc::Code::kOk) {
    rdmacc_note_failed_command();
  }
}

}  // namespace

bool rdmacc_savepoint_is_here(void) {
  return savepoint_count > 0 &&
         savepoints[savepoint_count - 1].nest == GetCurrentTransactionNestLevel();
}

void rdmacc_savepoint_before_write(void) {
  const int nest = GetCurrentTransactionNestLevel();
  if (nest <= 1 || rdmacc_savepoint_is_here()) return;
  CHECK(savepoint_count == 0 || savepoints[savepoint_count - 1].nest < nest);
  if (bridge_changes_wait()) {
    bridge_start_flush_indexes();
    rdmacc_pump();
    rdmacc_check("could not change indexes", nullptr);
  }
  reserve(&savepoints, &savepoint_capacity, savepoint_count);
  savepoints[savepoint_count].nest = nest;
  savepoints[savepoint_count].level = bridge_savepoint();
  savepoint_count++;
}

bool rdmacc_subtransaction_aborted(SubTransactionId subtransaction) {
  int low = 0;
  int high = aborted_count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (aborted[middle].last < subtransaction) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < aborted_count && aborted[low].first <= subtransaction;
}

void rdmacc_savepoint_started(SubTransactionId subtransaction) {
  CHECK(subtransaction > newest_subtransaction);
  newest_subtransaction = subtransaction;
}

void rdmacc_savepoint_committed(int nest) {
  if (savepoint_count == 0 || savepoints[savepoint_count - 1].nest < nest) return;
  Savepoint* top = &savepoints[savepoint_count - 1];
  CHECK(top->nest == nest); /* inner ones have been committed into this one */
  const int parent = nest - 1;
  const bool parent_has_own =
      parent <= 1 || (savepoint_count > 1 && savepoints[savepoint_count - 2].nest == parent);
  if (parent_has_own) {
    if (bridge_txn_active()) bridge_release(top->level); /* else COMMIT has ended it already */
    savepoint_count--;
  } else {
    top->nest = parent;
  }
}

void rdmacc_savepoint_aborted(int nest, SubTransactionId subtransaction) {
  /* A COMMIT that fails behind its first phase takes all of the transaction back. */
  const bool as_whole = bridge_prepared();
  while (savepoint_count > 0 && savepoints[savepoint_count - 1].nest >= nest) {
    savepoint_count--;
    if (bridge_txn_active() && !as_whole) bridge_rollback_to(savepoints[savepoint_count].level);
  }
  if (!as_whole) let_go();
  /* An enclosing subtransaction follows the nested ones that it takes with it. */
  while (aborted_count > 0 && aborted[aborted_count - 1].first >= subtransaction) aborted_count--;
  if (aborted_count > 0 && aborted[aborted_count - 1].last + 1 >= subtransaction) {
    aborted[aborted_count - 1].last = newest_subtransaction;
    return;
  }
  reserve(&aborted, &aborted_capacity, aborted_count);
  aborted[aborted_count].first = subtransaction;
  aborted[aborted_count].last = newest_subtransaction;
  aborted_count++;
}

void rdmacc_savepoints_forget(void) {
  /* Their memory goes with the transaction's. */
  savepoints = nullptr;
  savepoint_count = savepoint_capacity = 0;
  aborted = nullptr;
  aborted_count = aborted_capacity = 0;
  newest_subtransaction = InvalidSubTransactionId;
}
