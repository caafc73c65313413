#pragma once
#include <functional>
#include <span>
#include <vector>

#include "engine/check/graph.h"

// Shortest ways through a dependency graph, for the sentence that says what is wrong.

namespace rdmacc {

// Searches stop after so many edges looked at, once something has been found: what is reported
// then may not be the shortest of a large component.
constexpr uint64_t kSearchSteps = 50'000'000;

// A cycle of the fewest edges within the members of one component, as consecutive edges (the last
// one leads back to the first's `from`). Of parallel edges the strongest kind.
std::vector<DependencyEdge> shortest_cycle(const DependencyGraph& graph,
                                           const Components& components,
                                           std::span<const uint32_t> members,
                                           uint64_t steps_max = kSearchSteps);

// A way of the fewest edges from one of `starts` to a node that `is_goal(start, node)`: at least
// one edge long. Empty when there is none (the bound on steps holds after the first only).
std::vector<DependencyEdge> shortest_path(
    const DependencyGraph& graph, std::span<const uint32_t> starts,
    const std::function<bool(uint32_t start, uint32_t node)>& is_goal,
    uint64_t steps_max = kSearchSteps);

}  // namespace rdmacc
