#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/check/graph.h"
#include "engine/txn/transaction/history.h"

// Does a serial order exist that also respects real time: one that ended before another began comes
// before it? Of a history without cycles this needs no edge between any two transactions: such an
// order exists if and only if no transaction must come before one that had ended before it began.
// (Follow a cycle of dependencies and real time: after every step of real time the next one
// began later than the one before, so it never gets back.) O(transactions + dependencies).

namespace rdmacc {

struct RealTimeReport {
  // Transactions that must come before one that had ended before they began.
  std::vector<uint32_t> violators;
  // From one of them to one that had ended before it began, the fewest edges found.
  std::vector<DependencyEdge> path;
  std::string problem;  // a transaction that ended before it began; empty if there is none
};

// `counts[t]`: transaction t is taken as committed. One of unknown outcome has no end. The graph
// must have no cycle. Only strictly less counts: equal times are no order.
RealTimeReport check_real_time(std::span<const HistoryTransaction> history,
                               const std::vector<bool>& counts, const DependencyGraph& graph,
                               const Components& components);

}  // namespace rdmacc
