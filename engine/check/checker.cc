#include "engine/check/checker.h"

#include <algorithm>
#include <optional>

#include "engine/check/graph.h"
#include "engine/check/key_histories.h"
#include "engine/check/unknown_outcomes.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

class Checker {
 public:
  Checker(std::span<const HistoryTransaction> history, bool preloaded)
      : history_(history),
        preloaded_(preloaded),
        counts_(transactions_that_count(history, preloaded)),
        histories_(history, counts_) {}

  CheckReport run() {
    CheckReport report;
    report.transactions = history_.size();
    for (size_t t = 0; t < history_.size(); ++t) {
      report.operations += history_[t].events.size();
      report.committed += counts_[t] ? 1 : 0;
    }
    const std::span<const KeyHistory> keys = histories_.keys();
    for (key_ = 0; key_ < keys.size() && problem_.empty(); ++key_) check_key(keys[key_]);
    report.edges = edges_.size();
    if (problem_.empty()) {
      problem_ = describe(find_cycle(static_cast<uint32_t>(history_.size()), edges_));
    }
    report.serializable = problem_.empty();
    report.problem = std::move(problem_);
    return report;
  }

 private:
  std::string name(uint32_t txn) const {
    return "T" + std::to_string(txn + 1) + " (worker " + std::to_string(history_[txn].worker) + ")";
  }

  void add_edge(Dependency kind, KeyLook from, KeyLook to) {
    if (from.txn == to.txn) return;
    edges_.push_back({from.stamp, to.stamp, from.txn, to.txn, key_, kind});
  }

  void check_key(const KeyHistory& key) {
    if (!find_initial(key) || !check_chain(key)) return;
    for (const KeyLook& read : key.reads) {
      if (!add_read(key, read)) return;
    }
    for (const KeyLook& miss : key.misses) {
      if (!add_miss(key, miss)) return;
    }
  }

  static std::vector<KeyEvent>::const_iterator first_after(const KeyHistory& key, uint64_t stamp) {
    return std::upper_bound(
        key.events.begin(), key.events.end(), stamp,
        [](uint64_t value, const KeyEvent& event) { return value < event.stamp; });
  }

  // The event that made the version; end() if none did.
  static std::vector<KeyEvent>::const_iterator maker_of(const KeyHistory& key, uint64_t version) {
    const auto after = first_after(key, version);
    if (after == key.events.begin() || std::prev(after)->stamp != version) {
      return key.events.end();
    }
    return std::prev(after);
  }

  // Whether the key was there before the history began, and in which version (0: nobody read it).
  // Reads of any other version that nobody made are dirty.
  bool find_initial(const KeyHistory& key) {
    initially_live_ = preloaded_ && !key.events.empty() && key.events.front().needs_live;
    initial_version_.reset();
    for (const KeyLook& read : key.reads) {
      const auto maker = maker_of(key, read.stamp);
      if (maker != key.events.end()) {
        if (maker->live_after) continue;
        problem_ = name(read.txn) + " read " + describe_key(key) + " version " +
                   std::to_string(read.stamp) + ", which is the delete by " + name(maker->txn);
        return false;
      }
      const bool possible = preloaded_ && (!initial_version_ || *initial_version_ == read.stamp) &&
                            (key.events.empty() || (key.events.front().needs_live &&
                                                    read.stamp < key.events.front().stamp));
      if (!possible) {
        problem_ = "dirty read: " + name(read.txn) + " read " + describe_key(key) + " version " +
                   std::to_string(read.stamp) + ", which nobody committed made" +
                   uncommitted_maker(key, read.stamp);
        return false;
      }
      initial_version_ = read.stamp;
      initially_live_ = true;
    }
    return true;
  }

  std::string uncommitted_maker(const KeyHistory& key, uint64_t version) const {
    for (uint32_t t = 0; t < history_.size(); ++t) {
      if (counts_[t]) continue;
      for (const HistoryEvent& event : history_[t].events) {
        const bool makes = event.op == HistoryOp::kWrite || event.op == HistoryOp::kInsert;
        if (makes && event.table == key.table && event.key == key.key && event.version == version) {
          return " (" + name(t) + ", which did not commit, wrote it)";
        }
      }
    }
    return "";
  }

  // One version after the other: each by one writer, inserts where nothing is, writes and deletes
  // where something is.
  bool check_chain(const KeyHistory& key) {
    bool live = initially_live_;
    for (size_t i = 0; i < key.events.size(); ++i) {
      const KeyEvent& event = key.events[i];
      if (i > 0 && key.events[i - 1].stamp == event.stamp) {
        problem_ = name(key.events[i - 1].txn) + " and " + name(event.txn) + " both made " +
                   describe_key(key) + " version " + std::to_string(event.stamp);
        return false;
      }
      if (event.needs_live != live) {
        problem_ = name(event.txn) +
                   (live ? " inserted " + describe_key(key) + " while live"
                         : " wrote or deleted " + describe_key(key) + " while absent") +
                   ", at version " + std::to_string(event.stamp) +
                   (i > 0 ? " after version " + std::to_string(key.events[i - 1].stamp) + " by " +
                                name(key.events[i - 1].txn)
                          : "");
        return false;
      }
      if (i > 0) {
        add_edge(Dependency::kWriteWrite, {key.events[i - 1].stamp, key.events[i - 1].txn},
                 {event.stamp, event.txn});
      }
      live = event.live_after;
    }
    return true;
  }

  bool add_read(const KeyHistory& key, const KeyLook& read) {
    const auto maker = maker_of(key, read.stamp);
    if (maker != key.events.end()) {
      add_edge(Dependency::kWriteRead, {maker->stamp, maker->txn}, read);
    }
    const auto next = maker != key.events.end() ? std::next(maker) : key.events.begin();
    if (next != key.events.end()) {
      add_edge(Dependency::kReadWrite, read, {next->stamp, next->txn});
    }
    return true;
  }

  bool add_miss(const KeyHistory& key, const KeyLook& miss) {
    const auto next = first_after(key, miss.stamp);
    const bool live = next == key.events.begin() ? initially_live_ : std::prev(next)->live_after;
    if (live) {
      problem_ =
          "read absent while live: " + name(miss.txn) + " missed " + describe_key(key) + " as of " +
          std::to_string(miss.stamp) +
          (next == key.events.begin() ? ", loaded before the history began"
                                      : ", version " + std::to_string(std::prev(next)->stamp) +
                                            " by " + name(std::prev(next)->txn));
      return false;
    }
    if (next != key.events.begin()) {
      add_edge(Dependency::kDeleteMiss, {std::prev(next)->stamp, std::prev(next)->txn}, miss);
    }
    if (next != key.events.end()) {
      add_edge(Dependency::kMissInsert, miss, {next->stamp, next->txn});
    }
    return true;
  }

  std::string describe(const std::vector<DependencyEdge>& cycle) const {
    if (cycle.empty()) return "";
    std::string text = "cycle of " + std::to_string(cycle.size()) + ": ";
    for (const DependencyEdge& edge : cycle) {
      if (&edge != &cycle.front()) text += "; ";
      text += describe(edge);
    }
    return text;
  }

  std::string describe(const DependencyEdge& edge) const {
    const std::string key = describe_key(histories_.keys()[edge.key]);
    const std::string from = name(edge.from), to = name(edge.to);
    const std::string first = std::to_string(edge.from_stamp);
    const std::string second = std::to_string(edge.to_stamp);
    switch (edge.kind) {
      case Dependency::kWriteWrite:
        return from + " wrote " + key + " version " + first + " -> " + to +
               " made its next version " + second + " (ww)";
      case Dependency::kWriteRead:
        return from + " wrote " + key + " version " + first + " -> " + to + " read it (wr)";
      case Dependency::kReadWrite:
        return from + " read " + key + " version " + first + " -> " + to +
               " made its next version " + second + " (rw)";
      case Dependency::kDeleteMiss:
        return from + " deleted " + key + " at " + first + " -> " + to + " missed it as of " +
               second + " (wr)";
      case Dependency::kMissInsert:
        return from + " missed " + key + " as of " + first + " -> " + to + " inserted version " +
               second + " (rw)";
    }
    CHECK(false);
  }

  std::span<const HistoryTransaction> history_;
  const bool preloaded_;
  const std::vector<bool> counts_;
  const KeyHistories histories_;
  std::vector<DependencyEdge> edges_;
  std::string problem_;
  // Of the key being checked:
  uint32_t key_ = 0;
  bool initially_live_ = false;
  std::optional<uint64_t> initial_version_;
};

}  // namespace

CheckReport check_serializable(std::span<const HistoryTransaction> history, bool preloaded) {
  return Checker(history, preloaded).run();
}

}  // namespace rdmacc
