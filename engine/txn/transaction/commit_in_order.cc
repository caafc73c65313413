// Commit under a deterministic protocol: what the transaction read and wrote so far was its
// reconnaissance. It is handed over as a whole, executed at its place in the global order if what
// it read is still so there, and is otherwise aborted, to be tried again.

#include <algorithm>

#include "engine/txn/transaction/ordered_events.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// A table of what it has read is gone by its place in the order: another has dropped it, or given
// it a new one. It need not be there the next time.
Status lost_if_gone(const Status& status) {
  return status.code() == Code::kNotFound ? aborted(AbortReason::kVersionChanged) : status;
}

}  // namespace

// Keys are named, so that they are looked up where they are by then; scanned groups are compared.
OrderedRequest Transaction::make_ordered() const {
  OrderedRequest request;
  request.ctts = stamps_.ctts;
  request.plan = parameters_.plan;
  request.scanned = ordered_groups_;
  for (const KeyState& state : keys_.all()) {
    const bool exists = state.base == KeyState::Base::kExists;
    if (exists || state.base == KeyState::Base::kAbsent) {
      // A tombstone says that a key is absent, too.
      CHECK(state.tuple != nullptr || state.gap != nullptr);
      const Access& seen = state.tuple != nullptr ? *state.tuple : *state.gap;
      request.reads.push_back({state.table, std::string(state.key), exists, seen.read_wts});
    }
    if (const OwnVersion* last = state.to_write()) {
      request.writes.push_back(
          {state.table, std::string(state.key), last->deleted, std::string(last->row())});
    }
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

Status Transaction::submit_ordered(const OrderedRequest& request, OrderedOutcome& outcome,
                                   bool& unknown) {
  CHECK(started() && request.ctts == stamps_.ctts);
  CHECK(coordinator_.order != nullptr);
  if (parameters_.cancelled != nullptr && *parameters_.cancelled) return Status(Code::kCancelled);
  // From here on the transaction may be executed, whatever becomes of this coordinator.
  log_begun_ = !request.writes.empty();
  const uint64_t start_ns = begin_stage(Stage::kBroadcast);
  const Status status = coordinator_.order->submit(request, outcome, unknown, counters_);
  time_stage(Stage::kBroadcast, start_ns);  // and all that follows at the nodes
  log_begun_ = false;
  coordinator_.engine.clock.observe(outcome.stamp);
  return status;
}

// What may still be executed keeps the gate closed for other protocols, until the resolution of
// this worker has waited for the order.
void Transaction::finish_ordered(const Status& status, const OrderedOutcome& outcome) {
  CHECK(!log_begun_);
  if (outcome_unknown_ && outcome.may_happen_later) leave_to_resolution();
  note_failure(status);
  finish(status.ok() && !outcome.rolled_back
             ? HistoryOutcome::kCommitted
             : (outcome_unknown_ ? HistoryOutcome::kUnknown : HistoryOutcome::kAborted));
}

Status Transaction::commit_in_order() {
  const OrderedRequest request = make_ordered();
  OrderedOutcome outcome;
  Status status;
  const bool empty = request.reads.empty() && request.scanned.empty() && request.writes.empty();
  if (!empty) status = lost_if_gone(submit_ordered(request, outcome, outcome_unknown_));
  record_.stamp = status.ok() ? outcome.stamp : 0;
  if (status.ok() || outcome_unknown_) note_writes();
  if (status.ok()) note_ordered(request, outcome);
  if (status.ok()) settle_after(request.writes);
  finish_ordered(status, outcome);
  return status;
}

// Nodes install one transaction at different times and lock only as long as they do: rows that are
// all unchanged may still be the old and the new ones of one transaction. Its place in the order
// says whether they belong together, as for one that reads and writes nothing.
Status Transaction::check_reads_in_order() {
  OrderedRequest request = make_ordered();
  request.writes.clear();
  if (request.reads.empty() && request.scanned.empty()) return Status();
  OrderedOutcome outcome;
  bool unknown = false;
  const Status status = lost_if_gone(submit_ordered(request, outcome, unknown));
  note_failure(status);
  return status;
}

Status Transaction::execute_procedure(OrderedRequest request, OrderedOutcome& outcome) {
  CHECK(request.procedure != 0 && keys_.all().empty());
  request.ctts = stamps_.ctts;
  request.plan = parameters_.plan;
  for (const OrderedWrite& write : request.writes) {
    const bool read =
        std::any_of(request.reads.begin(), request.reads.end(), [&](const OrderedRead& each) {
          return each.table == write.table && each.key == write.key;
        });
    if (!read) request.reads.push_back({write.table, write.key, false, 0});
  }
  const Status status = submit_ordered(request, outcome, outcome_unknown_);
  if (status.ok() && coordinator_.history != nullptr) {
    history_.events = events_of_procedure(request, outcome);
  }
  finish_ordered(status, outcome);
  return status;
}

}  // namespace rdmacc
