#include "engine/check/anomaly.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

bool writes(const HistoryTransaction& transaction) {
  return std::any_of(transaction.events.begin(), transaction.events.end(),
                     [](const HistoryEvent& event) { return makes_a_version(event.op); });
}

bool is_write_read(Dependency kind) {
  return kind == Dependency::kWriteRead || kind == Dependency::kDeleteMiss;
}

bool one_key(std::span<const DependencyEdge> edges) {
  return std::all_of(edges.begin(), edges.end(),
                     [&](const DependencyEdge& edge) { return edge.key == edges[0].key; });
}

bool has_phantom(std::span<const DependencyEdge> edges) {
  return std::any_of(edges.begin(), edges.end(),
                     [](const DependencyEdge& edge) { return edge.by_scan; });
}

// A transaction that reads a version and makes a later one than the next has lost the next one's
// update, however many versions lie between: the two of them are all of the cycle that is worth
// telling. Any other cycle stays as it is.
std::vector<DependencyEdge> shorten_lost_update(std::span<const KeyHistory> keys,
                                                std::span<const DependencyEdge> cycle) {
  const auto is_anti = [](const DependencyEdge& edge) { return is_anti_dependency(edge.kind); };
  std::vector<DependencyEdge> shortened(cycle.begin(), cycle.end());
  if (cycle.size() == 2 || std::count_if(cycle.begin(), cycle.end(), is_anti) != 1) {
    return shortened;
  }
  const DependencyEdge read = *std::find_if(cycle.begin(), cycle.end(), is_anti);
  const std::vector<KeyEvent>& events = keys[read.key].events;
  const auto own = std::find_if(events.begin(), events.end(), [&read](const KeyEvent& event) {
    return event.txn == read.from && event.stamp > read.to_stamp;
  });
  if (own == events.end()) return shortened;
  return {read,
          {.from_stamp = read.to_stamp,
           .to_stamp = own->stamp,
           .from = read.to,
           .to = read.from,
           .key = read.key,
           .kind = Dependency::kWriteLater}};
}

std::string name_of_one_anti_dependency(std::span<const DependencyEdge> cycle) {
  if (has_phantom(cycle)) return "phantom";
  const bool reads = std::any_of(cycle.begin(), cycle.end(), [](const DependencyEdge& edge) {
    return is_write_read(edge.kind);
  });
  if (one_key(cycle)) return reads ? "non-repeatable read" : "lost update";
  return cycle.size() == 2 && reads ? "read skew" : "read skew (G-single)";
}

// Fekete, O'Neil, O'Neil: the reader makes an anomaly of two writers that were serializable.
bool is_read_only_anomaly(std::span<const HistoryTransaction> history,
                          std::span<const DependencyEdge> cycle) {
  for (size_t i = 0; i < cycle.size(); ++i) {
    const DependencyEdge& next = cycle[(i + 1) % cycle.size()];
    if (is_anti_dependency(cycle[i].kind) && is_anti_dependency(next.kind) &&
        !writes(history[cycle[i].from])) {
      return true;
    }
  }
  return false;
}

// Two readers that see two writes in opposite orders.
bool is_long_fork(std::span<const DependencyEdge> cycle) {
  if (cycle.size() != 4) return false;
  const size_t first = is_anti_dependency(cycle[0].kind) ? 0 : 1;
  for (size_t i = 0; i < cycle.size(); ++i) {
    const Dependency kind = cycle[(first + i) % cycle.size()].kind;
    if (i % 2 == 0 ? !is_anti_dependency(kind) : !is_write_read(kind)) return false;
  }
  return true;
}

std::string describe_edge(std::span<const HistoryTransaction> history,
                          std::span<const KeyHistory> keys, const DependencyEdge& edge) {
  const std::string key = describe_key(keys[edge.key]);
  const std::string from = transaction_name(history, edge.from);
  const std::string to = transaction_name(history, edge.to);
  const std::string first = std::to_string(edge.from_stamp);
  const std::string second = std::to_string(edge.to_stamp);
  const std::string missed = edge.by_scan ? " scanned and missed " : " missed ";
  switch (edge.kind) {
    case Dependency::kWriteWrite:
      return from + " wrote " + key + " version " + first + " -> " + to +
             " made its next version " + second + " (ww)";
    case Dependency::kWriteLater:
      return from + " wrote " + key + " version " + first + " -> " + to +
             " made the later version " + second + " (ww)";
    case Dependency::kWriteRead:
      return from + " wrote " + key + " version " + first + " -> " + to + " read it (wr)";
    case Dependency::kReadWrite:
      return from + " read " + key + " version " + first + " -> " + to + " made its next version " +
             second + " (rw)";
    case Dependency::kDeleteMiss:
      return from + " deleted " + key + " at " + first + " -> " + to + missed + "it as of " +
             second + " (wr)";
    case Dependency::kMissInsert:
      return from + missed + key + " as of " + first + " -> " + to + " inserted version " + second +
             " (rw)";
  }
  CHECK(false);
}

std::string describe_edges(std::span<const HistoryTransaction> history,
                           std::span<const KeyHistory> keys,
                           std::span<const DependencyEdge> edges) {
  std::string text;
  for (const DependencyEdge& edge : edges) {
    if (!text.empty()) text += "; ";
    text += describe_edge(history, keys, edge);
  }
  return text;
}

std::string real_time_name(std::span<const DependencyEdge> path) {
  if (path.size() > 1) return "real-time violation";
  if (is_anti_dependency(path[0].kind)) return "stale read";
  return is_write_read(path[0].kind) ? "read from the future" : "write into the past";
}

}  // namespace

std::string transaction_name(std::span<const HistoryTransaction> history, uint32_t txn) {
  return "T" + std::to_string(txn + 1) + " (worker " + std::to_string(history[txn].worker) + ")";
}

std::string anomaly_name(std::span<const HistoryTransaction> history,
                         std::span<const DependencyEdge> cycle) {
  CHECK(cycle.size() > 1);
  const auto anti = std::count_if(cycle.begin(), cycle.end(), [](const DependencyEdge& edge) {
    return is_anti_dependency(edge.kind);
  });
  if (anti == 0) {
    const bool reads = std::any_of(cycle.begin(), cycle.end(), [](const DependencyEdge& edge) {
      return is_write_read(edge.kind);
    });
    return reads ? "circular information flow (G1c)" : "dirty write (G0)";
  }
  if (anti == 1) return name_of_one_anti_dependency(cycle);
  if (is_read_only_anomaly(history, cycle)) return "read-only anomaly";
  if (is_long_fork(cycle)) return "long fork";
  if (has_phantom(cycle)) return "phantom";
  return cycle.size() == 2 ? "write skew" : "anti-dependency cycle (G2)";
}

std::string describe_cycle(std::span<const HistoryTransaction> history,
                           std::span<const KeyHistory> keys,
                           std::span<const DependencyEdge> cycle) {
  const std::vector<DependencyEdge> told = shorten_lost_update(keys, cycle);
  return anomaly_name(history, told) + ", cycle of " + std::to_string(told.size()) + ": " +
         describe_edges(history, keys, told);
}

std::string describe_real_time_cycle(std::span<const HistoryTransaction> history,
                                     std::span<const KeyHistory> keys,
                                     std::span<const DependencyEdge> path) {
  CHECK(!path.empty());
  const uint32_t first = path.back().to, second = path.front().from;
  return real_time_name(path) + ", cycle of " + std::to_string(path.size() + 1) + ": " +
         transaction_name(history, first) + " ended at " + std::to_string(history[first].end_us) +
         " -> " + transaction_name(history, second) + " began at " +
         std::to_string(history[second].start_us) + " (real time); " +
         describe_edges(history, keys, path);
}

}  // namespace rdmacc
