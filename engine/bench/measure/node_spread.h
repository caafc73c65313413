#pragma once
#include "engine/workloads/workload.h"

namespace rdmacc {

// How many nodes store what a transaction touches, on average: RCBench's theta. Of transactions
// whose keys are known from their inputs (Workload::declare), every kEvery-th is looked at.
class NodeSpread {
 public:
  static constexpr uint32_t kEvery = 64;

  void note(const Workload& workload, const TxnInputs& inputs, NodeId nodes);
  void clear() { *this = NodeSpread(); }
  void merge(const NodeSpread& other);
  bool known() const { return looked_at_ > 0; }
  double mean() const;  // 0: not known

 private:
  uint64_t transactions_ = 0, looked_at_ = 0, nodes_ = 0;
};

}  // namespace rdmacc
