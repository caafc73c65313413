#include "pg_rdmacc/xact/transaction_part.h"

namespace {

constexpr int kPartsMax = 32;

/* The parts' functions for one kind of step, in their order: few parts have one, and some kinds are
 * run several times in each transaction. */
template <auto kStep>
struct Steps;

template <typename Function, Function RdmaccTransactionPart::*kStep>
struct Steps<kStep> {
  static Function functions[kPartsMax];
  static int count;

  static void add(const RdmaccTransactionPart* part) {
    CHECK(count < kPartsMax);
    if (part->*kStep != nullptr) functions[count++] = part->*kStep;
  }

  template <typename... Arguments>
  static void run(Arguments... arguments) {
    for (int i = 0; i < count; i++) functions[i](arguments...);
  }
};

template <typename Function, Function RdmaccTransactionPart::*kStep>
Function Steps<kStep>::functions[kPartsMax];
template <typename Function, Function RdmaccTransactionPart::*kStep>
int Steps<kStep>::count;

using Pending = Steps<&RdmaccTransactionPart::pending>;
using BeforeCommit = Steps<&RdmaccTransactionPart::before_commit>;
using Finish = Steps<&RdmaccTransactionPart::finish>;
using SubtransactionCommitted = Steps<&RdmaccTransactionPart::subtransaction_committed>;
using SubtransactionAborted = Steps<&RdmaccTransactionPart::subtransaction_aborted>;
using OwnerReleased = Steps<&RdmaccTransactionPart::owner_released>;
using Forget = Steps<&RdmaccTransactionPart::forget>;

}  // namespace

void rdmacc_set_transaction_parts(const RdmaccTransactionPart* const* parts, int count) {
  CHECK(Forget::count == 0 && parts != nullptr && count > 0);
  for (int i = 0; i < count; i++) {
    Pending::add(parts[i]);
    BeforeCommit::add(parts[i]);
    Finish::add(parts[i]);
    SubtransactionCommitted::add(parts[i]);
    SubtransactionAborted::add(parts[i]);
    OwnerReleased::add(parts[i]);
    Forget::add(parts[i]);
  }
}

bool rdmacc_parts_pending(void) {
  for (int i = 0; i < Pending::count; i++) {
    if (Pending::functions[i]()) return true;
  }
  return false;
}

void rdmacc_parts_before_commit(void) { BeforeCommit::run(); }

void rdmacc_parts_finish(bool committed) { Finish::run(committed); }

void rdmacc_parts_subtransaction_committed(int nest) { SubtransactionCommitted::run(nest); }

void rdmacc_parts_subtransaction_aborted(int nest) { SubtransactionAborted::run(nest); }

void rdmacc_parts_owner_released(ResourceOwner owner, bool committed) {
  OwnerReleased::run(owner, committed);
}

void rdmacc_parts_forget(void) { Forget::run(); }
