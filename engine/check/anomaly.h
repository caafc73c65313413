#pragma once
#include <span>
#include <string>

#include "engine/check/graph.h"
#include "engine/check/key_histories.h"

// A cycle in words: each of its edges, and what the literature calls it (Adya's G0, G1c, G-single
// and G2 with their better known special cases).

namespace rdmacc {

// "T2 (worker 1)": T2 is the history's second transaction.
std::string transaction_name(std::span<const HistoryTransaction> history, uint32_t txn);

// "lost update"
std::string anomaly_name(std::span<const HistoryTransaction> history,
                         std::span<const DependencyEdge> cycle);

// "lost update, cycle of 2: T2 (worker 1) wrote …; T3 (worker 2) read …"
std::string describe_cycle(std::span<const HistoryTransaction> history,
                           std::span<const KeyHistory> keys, std::span<const DependencyEdge> cycle);

// The same of a cycle that the real-time edge from the path's last transaction to its first closes.
std::string describe_real_time_cycle(std::span<const HistoryTransaction> history,
                                     std::span<const KeyHistory> keys,
                                     std::span<const DependencyEdge> path);

}  // namespace rdmacc
