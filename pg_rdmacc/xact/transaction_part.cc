#include "pg_rdmacc/xact/transaction_part.h"

namespace {

const RdmaccTransactionPart* const* parts;
int part_count;

template <typename Step, typename... Arguments>
void run(Step RdmaccTransactionPart::*step, Arguments... arguments) {
  for (int i = 0; i < part_count; i++) {
    if (parts[i]->*step != nullptr) (parts[i]->*step)(arguments...);
  }
}

}  // namespace

void rdmacc_set_transaction_parts(const RdmaccTransactionPart* const* transaction_parts,
                                  int count) {
  CHECK(parts == nullptr && transaction_parts != nullptr && count > 0);
  parts = transaction_parts;
  part_count = count;
}

bool rdmacc_parts_pending(void) {
  for (int i = 0; i < part_count; i++) {
    if (parts[i]->pending != nullptr && parts[i]->pending()) return true;
  }
  return false;
}

void rdmacc_parts_before_commit(void) { run(&RdmaccTransactionPart::before_commit); }

void rdmacc_parts_finish(bool committed) { run(&RdmaccTransactionPart::finish, committed); }

void rdmacc_parts_subtransaction_committed(int nest) {
  run(&RdmaccTransactionPart::subtransaction_committed, nest);
}

void rdmacc_parts_subtransaction_aborted(int nest) {
  run(&RdmaccTransactionPart::subtransaction_aborted, nest);
}

void rdmacc_parts_owner_released(ResourceOwner owner, bool committed) {
  run(&RdmaccTransactionPart::owner_released, owner, committed);
}

void rdmacc_parts_forget(void) { run(&RdmaccTransactionPart::forget); }
