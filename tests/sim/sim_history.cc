// The history of a run: its outcomes settled by what others know, and judged.
#include <algorithm>

#include "engine/check/checker.h"
#include "engine/protocols/registry.h"
#include "tests/sim/acknowledged_rows.h"
#include "tests/sim/sim_run.h"

namespace rdmacc {

// A coordinator that died while its request was in the global order could not tell its stamp; the
// nodes can.
std::vector<HistoryTransaction> SimRun::settled_history() const {
  std::vector<HistoryTransaction> settled = history();
  for (HistoryTransaction& transaction : settled) {
    // Nothing is promised of a table that is dropped beside its users.
    if (door_ != nullptr) {
      std::erase_if(transaction.events,
                    [this](const HistoryEvent& event) { return door_->was_visited(event.table); });
    }
    if (transaction.outcome != HistoryOutcome::kUnknown) continue;
    if (const std::optional<bool> committed = decider_.outcome_of(transaction.ctts)) {
      transaction.outcome = *committed ? HistoryOutcome::kCommitted : HistoryOutcome::kAborted;
      continue;
    }
    const auto found = ordered_.find(transaction.ctts);
    if (found != ordered_.end() && !found->second.events.empty()) {
      transaction.events = found->second.events;
      continue;
    }
    std::erase_if(transaction.events, [&](HistoryEvent& event) {
      const bool write = event.op == HistoryOp::kWrite || event.op == HistoryOp::kInsert ||
                         event.op == HistoryOp::kDelete;
      if (!write || event.version != 0) return false;
      if (found != ordered_.end()) event.version = found->second.stamp;
      return found == ordered_.end();
    });
  }
  return settled;
}

Status judge_history(const std::vector<HistoryTransaction>& history, Protocol protocol,
                     uint64_t& real_time_violations) {
  const CheckReport report = check_serializable(history, {.real_time = true});
  if (!report.serializable) return Status(Code::kCorrupt, report.problem);
  real_time_violations = report.real_time_violations;
  if (report.strictly_serializable || !strictly_serializable(protocol)) return Status();
  return Status(Code::kCorrupt, report.real_time_problem);
}

Status SimRun::check_history() {
  return judge_history(settled_history(), scenario_.protocol, real_time_violations_);
}

Status SimRun::check_acknowledged() {
  const AcknowledgedRows rows(settled_history());
  std::string violation;
  RDMACC_RETURN_IF_ERROR(run_task(keeper_->worker().scheduler(), [&, this] {
    Session session(*keeper_);
    return retry_aborted(keeper_->worker().scheduler(),
                         [&] { return rows.check(session, txn_, workload_->tables(), violation); });
  }));
  return violation.empty() ? Status() : Status(Code::kCorrupt, violation);
}

Status SimRun::check_workload() {
  std::string violation;
  RDMACC_RETURN_IF_ERROR(run_task(keeper_->worker().scheduler(), [this, &violation] {
    Session session(*keeper_);
    return retry_aborted(keeper_->worker().scheduler(),
                         [&] { return workload_->check(session, txn_, delta_, violation); });
  }));
  return violation.empty() ? Status() : Status(Code::kCorrupt, violation);
}

std::string SimRun::history_text() const {
  std::string text;
  for (const HistoryTransaction& transaction : history()) {
    text += to_json_line(transaction);
    text += '\n';
  }
  return text;
}

}  // namespace rdmacc
