// Whether what a transaction has read is still current, asked before it commits: under protocols
// that do not hold on to what they read, two reads may be of different moments, and what does not
// fit together then (two rows with one unique value, say) is no error of its user's.
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/scan_slots.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {

// A look at the gate costs a line of each worker, validation one of each row, of which a group has
// some.
void Transaction::watch_others(size_t groups) {
  const ProtocolRules& rules = *parameters_.rules;
  if (!rules.validates_moment || hosted_ || watch_.begun()) return;
  if (accesses_.has_scanned_reads()) return;
  const Topology& topology = coordinator_.engine.topology;
  if (4 * groups * topology.nodes < topology.workers_max) return;
  rows_before_watch_ = accesses_.has_rows();
  watch_.begin(coordinator_.gate, counters_);
}

// What scans have only read: in place as it is, or else in parts of which accesses are made for no
// longer than they are looked at.
Status Transaction::validate_scanned(StageContext& stage, const Validate& validate) {
  const StageRule& rule = stage.rules.validate;
  if (!accesses_.has_reads()) return Status();
  const bool alone = stage.rules.validates_moment && watch_.still_alone(counters_);
  if (alone && !rows_before_watch_) return Status();
  const auto for_reads = [&](const auto& work) {
    return alone ? accesses_.for_rows(work) : accesses_.for_reads(work);
  };
  Status status;
  if (!alone) {
    accesses_.for_blocks([&](TableId table, std::span<const ReadBlock> some) {
      status = check_blocks(stage, table, some);
      return status.ok();
    });
    RDMACC_RETURN_IF_ERROR(status);
  }
  if (rule.check_reads != nullptr && validates_in_place(stage, parameters_.plan)) {
    for_reads([&](TableId table, std::span<const ScannedRead> some) {
      status = rule.check_reads(stage, rule.step, table, some);
      return status.ok();
    });
    return status;
  }
  constexpr size_t kPart = 512;
  const auto holds = stage.rules.holds_until_commit;
  std::vector<Access> accesses;
  std::vector<Access*> some;
  const auto validate_some = [&] {
    some.clear();
    for (Access& access : accesses) some.push_back(&access);
    status = validate(some);
    accesses.clear();
    return status.ok();
  };
  const bool all = for_reads([&](TableId table, std::span<const ScannedRead> part) {
    for (const ScannedRead& read : part) {
      if (read.header.null()) continue;  // it was taken out
      accesses.push_back(read.access(table));
      if (holds != nullptr && holds(accesses.back(), stamps_)) accesses.pop_back();
      if (accesses.size() == kPart && !validate_some()) return false;
    }
    return true;
  });
  if (all) validate_some();
  return status;
}

// Stricter than a protocol's validation may be, which can order a writer behind the reader: one
// that is told no may try again.
Status Transaction::check_reads() {
  CHECK(started() && !prepared_);
  stage_end_ns_ = 0;
  const ProtocolRules& own = *parameters_.rules;
  if (own.commits_in_order) return check_reads_in_order();
  if (own.locks_what_it_reads() || (!own.validate && !needs_current_reads_)) return Status();
  std::vector<Access*> reads;
  for (Access& access : accesses_) {
    if (access.read && !access.held()) reads.push_back(&access);
  }
  ProtocolRules rules = own;
  // What happens at a time that is known is validated as of that time, unless it has to be now.
  if (!own.reads_at_ctts || needs_current_reads_) {
    rules.validate = own.reads_at_ctts ? checked_by<still_newest> : checked_by<still_current>;
    rules.holds_until_commit = nullptr;
  }
  scratch_.reset();
  StageContext stage = context(scratch_).by(rules);
  const auto validate = [&](std::span<Access*> some) { return validate_accesses(stage, some); };
  Status status = validate(reads);
  if (status.ok()) status = validate_scanned(stage, validate);
  note_failure(status);
  return status;
}

}  // namespace rdmacc
