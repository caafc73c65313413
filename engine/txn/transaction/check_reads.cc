// Whether what a transaction has read is still current, asked before it commits: under protocols
// that do not hold on to what they read, two reads may be of different moments, and what does not
// fit together then (two rows with one unique value, say) is no error of its user's.
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
// Stricter than a protocol's validation may be, which can order a writer behind the reader: one
// that is told no may try again.
Status Transaction::check_reads() {
  CHECK(started() && !prepared_);
  stage_end_ns_ = 0;
  const ProtocolRules& own = *parameters_.rules;
  if (own.commits_in_order) return check_reads_in_order();
  if (!own.validate) return Status();
  std::vector<Access*> reads;
  for (Access& access : accesses_) {
    if (access.read && !access.held()) reads.push_back(&access);
  }
  ProtocolRules rules = own;
  rules.validate = checked_by<still_current>;
  scratch_.reset();
  StageContext stage = context(scratch_).by(rules);
  const Status status = validate_accesses(stage, reads);
  note_failure(status);
  return status;
}

}  // namespace rdmacc
