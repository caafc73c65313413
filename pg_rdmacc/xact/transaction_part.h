/* What other parts of the extension do around the end of a transaction. xact.cc runs their steps
 * and knows none of them: module.cc names the parts in one table, in the order in which each kind
 * of step runs.
 *
 * A part leaves out the steps that it does not need. All but before_commit run where nothing may
 * raise an error. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/resowner.h"

typedef struct RdmaccTransactionPart {
  /* Is there work for finish()? */
  bool (*pending)(void) = nullptr;
  /* The last checks, and the last writes, before the engine's transaction commits; may raise. */
  void (*before_commit)(void) = nullptr;
  /* The engine's transaction has ended. */
  void (*finish)(bool committed) = nullptr;
  void (*subtransaction_committed)(int nest) = nullptr;
  void (*subtransaction_aborted)(int nest) = nullptr;
  /* A resource owner goes: a portal's, a subtransaction's, or the transaction's. */
  void (*owner_released)(ResourceOwner owner, bool committed) = nullptr;
  /* The transaction is over. What was allocated in its memory context goes with that. */
  void (*forget)(void) = nullptr;
} RdmaccTransactionPart;

/* The table, of static storage; once, when the library is loaded. */
void rdmacc_set_transaction_parts(const RdmaccTransactionPart* const* parts, int count);

/* ---- For xact.cc: the step of every part that has it. */
bool rdmacc_parts_pending(void); /* of any part */
void rdmacc_parts_before_commit(void);
void rdmacc_parts_finish(bool committed);
void rdmacc_parts_subtransaction_committed(int nest);
void rdmacc_parts_subtransaction_aborted(int nest);
void rdmacc_parts_owner_released(ResourceOwner owner, bool committed);
void rdmacc_parts_forget(void);
}
