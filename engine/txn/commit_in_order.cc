// Commit under a deterministic protocol: what the transaction read and wrote so far was its
// reconnaissance. It is handed over as a whole, executed at its place in the global order if what
// it read is still so there, and is otherwise aborted, to be tried again.

#include "engine/txn/transaction.h"

namespace rdmacc {

// Keys are named, so that they are looked up where they are by then; of scanned groups the headers
// that were seen are checked.
OrderedRequest Transaction::make_ordered() const {
  OrderedRequest request;
  request.ctts = stamps_.ctts;
  request.plan = parameters_.plan;
  std::unordered_set<const Access*> named;  // headers that a key of the request stands for
  for (const KeyState& state : keys_.all()) {
    const bool exists = state.base == KeyState::Base::kExists;
    if (exists || state.base == KeyState::Base::kAbsent) {
      // A tombstone says that a key is absent, too.
      const Access& seen = state.tuple != nullptr ? *state.tuple : *state.gap;
      request.reads.push_back({state.table, state.key, exists, seen.read_wts});
      if (!seen.gap) named.insert(&seen);
    }
    if (state.own.empty()) continue;
    const OwnVersion& last = state.own.back();
    if (!exists && last.deleted) continue;  // inserted and deleted again
    request.writes.push_back({state.table, state.key, last.deleted, last.row});
  }
  for (const Access& access : accesses_) {
    if (!access.read) continue;
    if (access.gap ? !scanned_gaps_.contains(&access) : named.contains(&access)) continue;
    request.scanned.push_back(access);
  }
  return request;
}

// A key that was missed is still absent at the transaction's place: that is what it depends on.
void Transaction::note_ordered(const OrderedRequest& request, const OrderedOutcome& outcome) {
  if (coordinator_.history == nullptr) return;
  for (size_t i = 0; i < request.reads.size() && i < outcome.reads.size(); i++) {
    const OrderedRead& read = request.reads[i];
    if (read.found) continue;
    for (HistoryEvent& seen : history_.events) {
      if (seen.op == HistoryOp::kMiss && seen.table == read.table && seen.key == read.key) {
        seen.version = outcome.reads[i].version;
      }
    }
  }
}

Status Transaction::commit_in_order() {
  CHECK(coordinator_.order != nullptr);
  OrderedRequest request = make_ordered();
  const bool empty = request.reads.empty() && request.scanned.empty() && request.writes.empty();
  OrderedOutcome outcome;
  Status status;
  if (!empty) {
    if (parameters_.cancelled != nullptr && *parameters_.cancelled)
      status = Status(Code::kCancelled);
    // From here on the transaction may be executed, whatever becomes of us.
    log_begun_ = status.ok() && !request.writes.empty();
    status = status.ok() ? collect_writes() : status;
    if (status.ok()) {
      status = coordinator_.order->submit(request, outcome, outcome_unknown_, counters_);
    }
    coordinator_.engine.clock.observe(outcome.stamp);
  }
  log_begun_ = false;
  record_.stamp = status.ok() ? outcome.stamp : 0;
  if (status.ok() || outcome_unknown_) note_writes();
  if (status.ok()) note_ordered(request, outcome);
  note_failure(status);
  finish(status.ok() ? HistoryOutcome::kCommitted
                     : (outcome_unknown_ ? HistoryOutcome::kUnknown : HistoryOutcome::kAborted));
  return status;
}

}  // namespace rdmacc
