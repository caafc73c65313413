#pragma once
#include "engine/txn/rule/outcome.h"
#include "engine/txn/rule/stage.h"
#include "rdma/base/verb_counters.h"

namespace rdmacc {

// How a transaction that was let in has ended. A reason of kNone is an abort that is no conflict:
// its user's, a timeout's, an error's.
struct TxnEnd {
  Protocol protocol;
  StagePlan plan;  // without the stages that the protocol does not have
  bool committed;
  AbortReason reason;
  VerbCounters verbs = {};  // without those of memory that it took or freed
  uint32_t nodes = 0;       // that store the first 64 headers which it has met
};

// Is told what the transactions of one coordinator measure, as they go, by the coordinator's
// thread. Must neither yield nor take long.
class TxnObserver {
 public:
  virtual ~TxnObserver() = default;
  // Before a round of a stage; stage_done() follows if the round is carried out.
  virtual void stage_begins(Stage) {}
  // Once per round of a stage, with the time that the whole round took.
  virtual void stage_done(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns) = 0;
  virtual void transaction_done(const TxnEnd& end) = 0;
};

}  // namespace rdmacc
