#include "engine/bench/measure/node_spread.h"

#include <bit>

namespace rdmacc {

void NodeSpread::note(const Workload& workload, const TxnInputs& inputs, NodeId nodes) {
  if (transactions_++ % kEvery != 0) return;
  KeyDeclaration declaration;
  if (!workload.declare(inputs, declaration)) return;
  CHECK(nodes <= 64);
  uint64_t touched = 0;
  for (const DeclaredKey& key : declaration.keys) {
    touched |= uint64_t{1} << home_node_of(key.table, key.key(), nodes);
  }
  ++looked_at_;
  nodes_ += static_cast<uint64_t>(std::popcount(touched));
}

void NodeSpread::merge(const NodeSpread& other) {
  transactions_ += other.transactions_;
  looked_at_ += other.looked_at_;
  nodes_ += other.nodes_;
}

double NodeSpread::mean() const {
  return looked_at_ == 0 ? 0 : static_cast<double>(nodes_) / static_cast<double>(looked_at_);
}

}  // namespace rdmacc
