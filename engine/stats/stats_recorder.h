#pragma once
#include <array>

#include "engine/stats/plan_chooser.h"
#include "engine/stats/shared_stats.h"
#include "engine/txn/transaction/txn_observer.h"

namespace rdmacc {

// Brings what one coordinator measures to the statistics that all share, and to the chooser of
// its stage plans. Shared memory is touched once per transaction: stages are kept until it ends,
// or until there are kBufferedMax of them.
class StatsRecorder : public TxnObserver {
 public:
  // `shared` may be nullptr: then only the chooser learns. Neither is owned.
  StatsRecorder(SharedStats* shared, PlanChooser* chooser) : shared_(shared), chooser_(chooser) {}
  ~StatsRecorder() override { flush(); }
  StatsRecorder(const StatsRecorder&) = delete;
  StatsRecorder& operator=(const StatsRecorder&) = delete;

  // Whether the transactions that end from now on had a plan that explores.
  void set_exploring(bool exploring) { exploring_ = exploring; }

  void stage_done(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns) override;
  void transaction_done(const TxnEnd& end) override;

 private:
  static constexpr size_t kBufferedMax = 64;
  struct Timing {
    Protocol protocol;
    Stage stage;
    Primitive primitive;
    uint64_t ns;
  };

  void flush();

  SharedStats* const shared_;
  PlanChooser* const chooser_;
  std::array<Timing, kBufferedMax> buffered_;
  size_t buffered_count_ = 0;
  uint64_t stage_ns_ = 0;  // of the transaction under way
  bool exploring_ = false;
};

}  // namespace rdmacc
