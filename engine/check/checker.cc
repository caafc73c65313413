#include "engine/check/checker.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/check/anomaly.h"
#include "engine/check/cycle.h"
#include "engine/check/graph.h"
#include "engine/check/key_histories.h"
#include "engine/check/real_time.h"
#include "engine/check/unknown_outcomes.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

class Checker {
 public:
  Checker(std::span<const HistoryTransaction> history, const CheckOptions& options)
      : history_(history),
        options_(options),
        counts_(transactions_that_count(history, options.preloaded)),
        histories_(history, counts_) {}

  CheckReport run() {
    report_.transactions = history_.size();
    for (size_t t = 0; t < history_.size(); ++t) {
      report_.operations += history_[t].events.size();
      report_.committed += counts_[t] ? 1 : 0;
    }
    const std::span<const KeyHistory> keys = histories_.keys();
    for (key_ = 0; key_ < keys.size() && problem_.empty(); ++key_) check_key(keys[key_]);
    report_.edges = edges_.size();
    if (problem_.empty()) check_order();
    report_.serializable = problem_.empty();
    report_.strictly_serializable = problem_.empty() && report_.real_time_problem.empty();
    report_.problem = std::move(problem_);
    return std::move(report_);
  }

 private:
  std::string name(uint32_t txn) const { return transaction_name(history_, txn); }

  void check_order() {
    const std::span<const KeyHistory> keys = histories_.keys();
    const DependencyGraph graph(static_cast<uint32_t>(history_.size()), edges_);
    const Components components = find_components(graph);
    if (!components.smallest_cyclic.empty()) {
      problem_ = describe_cycle(history_, keys,
                                shortest_cycle(graph, components, components.smallest_cyclic));
      return;
    }
    if (!options_.real_time) return;
    const RealTimeReport order = check_real_time(history_, counts_, graph, components);
    report_.real_time_violations = order.violators.size();
    report_.real_time_problem = order.problem;
    if (!order.path.empty()) {
      report_.real_time_problem = describe_real_time_cycle(history_, keys, order.path);
    }
  }

  void add_edge(Dependency kind, KeyLook from, KeyLook to) {
    if (from.txn == to.txn) return;
    edges_.push_back(
        {from.stamp, to.stamp, from.txn, to.txn, key_, kind, from.by_scan || to.by_scan});
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

  // Whether the key was there before the history began, and in which version (0: it was never
  // read). Reads of any other version that no transaction made are dirty.
  bool find_initial(const KeyHistory& key) {
    initially_live_ = options_.preloaded && !key.events.empty() && key.events.front().needs_live;
    initial_version_.reset();
    for (const KeyLook& read : key.reads) {
      const auto maker = maker_of(key, read.stamp);
      if (maker != key.events.end()) {
        if (maker->live_after) continue;
        problem_ = name(read.txn) + " read " + describe_key(key) + " version " +
                   std::to_string(read.stamp) + ", which is the delete by " + name(maker->txn);
        return false;
      }
      const bool possible =
          options_.preloaded && (!initial_version_ || *initial_version_ == read.stamp) &&
          (key.events.empty() ||
           (key.events.front().needs_live && read.stamp < key.events.front().stamp));
      if (!possible) {
        problem_ = name(read.txn) + " read " + describe_key(key) + " version " +
                   std::to_string(read.stamp) + ", which " + maker_in_words(key, read.stamp);
        return false;
      }
      initial_version_ = read.stamp;
      initially_live_ = true;
    }
    return true;
  }

  // Of a version that no transaction has left behind.
  std::string maker_in_words(const KeyHistory& key, uint64_t version) const {
    for (uint32_t t = 0; t < history_.size(); ++t) {
      for (const HistoryEvent& event : history_[t].events) {
        if (!makes_a_version(event.op) || event.version != version || event.table != key.table ||
            event.key != key.key) {
          continue;
        }
        return counts_[t] ? name(t) + " itself wrote over (intermediate read, G1b)"
                          : name(t) + ", which did not commit, wrote (dirty read, G1a)";
      }
    }
    return "no transaction made (dirty read, G1a)";
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

  // What the key was as of the miss's stamp: what all others with stamps up to it made of it. An
  // own write comes after all own reads, whatever its stamp: a multi-version transaction inserts
  // at the very stamp as of which it has missed the key.
  bool add_miss(const KeyHistory& key, const KeyLook& miss) {
    auto after = first_after(key, miss.stamp);  // the first event that the miss did not see
    while (after != key.events.begin() && std::prev(after)->txn == miss.txn) --after;
    const bool first = after == key.events.begin();
    if (first ? initially_live_ : std::prev(after)->live_after) {
      problem_ = "read absent while live: " + name(miss.txn) + " missed " + describe_key(key) +
                 " as of " + std::to_string(miss.stamp) +
                 (first ? ", loaded before the history began"
                        : ", version " + std::to_string(std::prev(after)->stamp) + " by " +
                              name(std::prev(after)->txn));
      return false;
    }
    if (!first && !is_known(miss, std::prev(after)->txn, scanned_after_)) {
      add_edge(Dependency::kDeleteMiss, {std::prev(after)->stamp, std::prev(after)->txn}, miss);
    }
    if (after != key.events.end() && !is_known(miss, after->txn, scanned_before_)) {
      add_edge(Dependency::kMissInsert, miss, {after->stamp, after->txn});
    }
    return true;
  }

  // Scans miss many keys that one transaction has loaded or removed: one edge says it for keys
  // that follow each other. `last`: the other side of each transaction's latest such edge.
  bool is_known(const KeyLook& miss, uint32_t other, std::vector<uint32_t>& last) const {
    if (!miss.by_scan) return false;
    if (last.empty()) last.assign(history_.size(), std::numeric_limits<uint32_t>::max());
    return std::exchange(last[miss.txn], other) == other;
  }

  std::span<const HistoryTransaction> history_;
  const CheckOptions options_;
  const std::vector<bool> counts_;
  const KeyHistories histories_;
  std::vector<DependencyEdge> edges_;
  std::vector<uint32_t> scanned_after_, scanned_before_;  // see is_known; empty before any scan
  std::string problem_;
  CheckReport report_;
  // Of the key being checked:
  uint32_t key_ = 0;
  bool initially_live_ = false;
  std::optional<uint64_t> initial_version_;
};

}  // namespace

CheckReport check_serializable(std::span<const HistoryTransaction> history,
                               const CheckOptions& options) {
  return Checker(history, options).run();
}

}  // namespace rdmacc
