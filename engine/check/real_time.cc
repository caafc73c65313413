#include "engine/check/real_time.h"

#include <algorithm>
#include <limits>

#include "engine/check/anomaly.h"
#include "engine/check/cycle.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

uint64_t end_of(const HistoryTransaction& transaction) {
  return transaction.outcome == HistoryOutcome::kCommitted ? transaction.end_us : kNever;
}

}  // namespace

RealTimeReport check_real_time(std::span<const HistoryTransaction> history,
                               const std::vector<bool>& counts, const DependencyGraph& graph,
                               const Components& components) {
  CHECK(components.smallest_cyclic.empty());
  RealTimeReport report;
  for (uint32_t t = 0; t < history.size(); ++t) {
    if (counts[t] && end_of(history[t]) < history[t].start_us) {
      report.problem = transaction_name(history, t) + " ended at " +
                       std::to_string(history[t].end_us) + ", before it began at " +
                       std::to_string(history[t].start_us);
      return report;
    }
  }

  std::vector<uint64_t> earliest_end_after(history.size(), kNever);  // of all that must come later
  for (const uint32_t t : components.last_first) {
    uint64_t& earliest = earliest_end_after[t];
    for (const uint32_t e : graph.out_of(t)) {
      const uint32_t next = graph.edge(e).to;
      earliest = std::min({earliest, end_of(history[next]), earliest_end_after[next]});
    }
    if (earliest < history[t].start_us) report.violators.push_back(t);
  }
  std::sort(report.violators.begin(), report.violators.end());
  report.path = shortest_path(graph, report.violators, [&history](uint32_t start, uint32_t node) {
    return end_of(history[node]) < history[start].start_us;
  });
  return report;
}

}  // namespace rdmacc
