// Whether what a transaction has read is still current, asked before it commits: under protocols
// that do not hold on to what they read, two reads may be of different moments, and what does not
// fit together then (two rows with one unique value, say) is no error of its user's.
#include "engine/txn/lock.h"
#include "engine/txn/transaction.h"

namespace rdmacc {
namespace {

// Stricter than any protocol's validation, which may order a writer behind the reader: who is told
// no may try again.
Step still_current(const Access& access, const Look* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kLastLook);
  const bool free = seen->last.lock == 0 || seen->last.lock == txn.ctts;
  if (free && seen->last.wts == access.read_wts) return Step::done();
  return Step::abort(access.gap ? AbortReason::kGapChanged : AbortReason::kVersionChanged);
}

}  // namespace

Status Transaction::check_reads() {
  const ProtocolRules& own = *parameters_.rules;
  if (own.validate == nullptr && !own.commits_in_order) return Status();
  std::vector<Access*> reads;
  for (Access& access : accesses_) {
    if (access.read && !access.held()) reads.push_back(&access);
  }
  ProtocolRules rules = own;
  rules.validate = still_current;
  scratch_.reset();
  const StageContext stage = context(scratch_);
  StageContext checking{stage.engine,   rules,          stage.stamps,
                        stage.arena,    stage.counters, stage.allocation_counters,
                        stage.cancelled};
  const Status status = validate_accesses(checking, reads);
  note_failure(status);
  return status;
}

}  // namespace rdmacc
