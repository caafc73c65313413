#include "engine/check/unknown_outcomes.h"

#include <algorithm>
#include <unordered_map>

#include "engine/check/key_histories.h"
#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

class UnknownOutcomes {
 public:
  UnknownOutcomes(std::span<const HistoryTransaction> history, bool preloaded)
      : history_(history), preloaded_(preloaded), counts_(history.size(), false) {
    for (uint32_t t = 0; t < history.size(); ++t) {
      if (history[t].outcome == HistoryOutcome::kCommitted) {
        counts_[t] = true;
      } else if (history[t].outcome == HistoryOutcome::kUnknown) {
        ++unsettled_;
        for (const HistoryEvent& event : history[t].events) note_write(t, event);
      }
    }
  }

  std::vector<bool> settle() {
    if (unsettled_ == 0) return std::move(counts_);
    std::vector<uint32_t> fresh;
    for (uint32_t t = 0; t < history_.size(); ++t) {
      if (counts_[t]) fresh.push_back(t);
    }
    // Each turn counts at least one more transaction, so this ends.
    while (!fresh.empty() && unsettled_ > 0) {
      follow_stamps(std::move(fresh));
      fresh = needed_by_chains();
    }
    return std::move(counts_);
  }

 private:
  void note_write(uint32_t txn, const HistoryEvent& event) {
    if (makes_a_version(event.op) && event.version != 0) writer_of_stamp_[event.version] = txn;
  }

  bool count(uint32_t txn) {
    if (counts_[txn]) return false;
    counts_[txn] = true;
    --unsettled_;
    return true;
  }

  // A stamp that a transaction saw was installed: in a record or in a gap header. `pending` and
  // the transactions that it makes count are followed.
  void follow_stamps(std::vector<uint32_t> pending) {
    while (!pending.empty()) {
      const uint32_t t = pending.back();
      pending.pop_back();
      const auto seen = [&](uint64_t stamp) {
        const auto writer = writer_of_stamp_.find(stamp);
        if (writer != writer_of_stamp_.end() && count(writer->second)) {
          pending.push_back(writer->second);
        }
      };
      // Under timestamp ordering an absence is as of the transaction's time, and tells of no stamp:
      // the ctts before it may be another worker's.
      const bool sees_gaps = !happens_at_ctts(history_[t].protocol);
      for (const HistoryEvent& event : history_[t].events) {
        const bool read = event.op == HistoryOp::kRead;
        if (read || (event.op == HistoryOp::kMiss && sees_gaps)) seen(event.version);
        for (const ScannedGroup& group : event.groups) {
          if (sees_gaps) seen(group.stamp);
        }
      }
    }
  }

  // An insert (or delete, or miss) that is only possible if a delete (or insert) of unknown
  // outcome took place before it.
  std::vector<uint32_t> needed_by_chains() {
    std::vector<bool> candidates(history_.size(), false);
    for (uint32_t t = 0; t < history_.size(); ++t) {
      candidates[t] = history_[t].outcome == HistoryOutcome::kUnknown && !counts_[t];
    }
    const KeyHistories settled(history_, counts_);
    const KeyHistories open(history_, candidates);
    std::vector<uint32_t> fresh;
    for (const KeyHistory& key : open.keys()) {
      const KeyHistory* known = settled.find(key.table, key.key);
      if (known == nullptr) continue;
      for (const KeyEvent& event : key.events) {
        if (needed(*known, event) && count(event.txn)) fresh.push_back(event.txn);
      }
    }
    return fresh;
  }

  bool needed(const KeyHistory& known, const KeyEvent& candidate) const {
    const auto next =
        std::upper_bound(known.events.begin(), known.events.end(), candidate.stamp,
                         [](uint64_t stamp, const KeyEvent& event) { return stamp < event.stamp; });
    const bool live_before = next != known.events.begin() ? std::prev(next)->live_after
                             : preloaded_                 ? candidate.needs_live
                                                          : false;
    if (candidate.needs_live != live_before || candidate.live_after == live_before) return false;
    if (next != known.events.end() && next->needs_live != live_before) return true;
    if (!live_before) return false;
    return std::any_of(known.misses.begin(), known.misses.end(), [&](const KeyLook& miss) {
      return miss.stamp >= candidate.stamp &&
             (next == known.events.end() || miss.stamp < next->stamp);
    });
  }

  std::span<const HistoryTransaction> history_;
  const bool preloaded_;
  std::vector<bool> counts_;
  std::unordered_map<uint64_t, uint32_t> writer_of_stamp_;
  uint64_t unsettled_ = 0;
};

}  // namespace

std::vector<bool> transactions_that_count(std::span<const HistoryTransaction> history,
                                          bool preloaded) {
  return UnknownOutcomes(history, preloaded).settle();
}

}  // namespace rdmacc
