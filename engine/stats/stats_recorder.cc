#include "engine/stats/stats_recorder.h"

namespace rdmacc {

void StatsRecorder::stage_done(Protocol protocol, Stage stage, Primitive primitive, uint64_t ns) {
  if (chooser_ != nullptr) chooser_->stage_done(protocol, stage, primitive, ns);
  if (shared_ == nullptr) return;
  if (buffered_count_ == kBufferedMax) flush();
  stage_ns_ += ns;
  buffered_[buffered_count_++] = {protocol, stage, primitive, ns};
}

void StatsRecorder::transaction_done(const TxnEnd& end) {
  if (shared_ == nullptr) return;
  flush();
  shared_->add_transaction(end, stage_ns_, exploring_);
  stage_ns_ = 0;
}

void StatsRecorder::flush() {
  for (size_t i = 0; i < buffered_count_; ++i) {
    const Timing& timing = buffered_[i];
    shared_->add_stage(timing.protocol, timing.stage, timing.primitive, timing.ns);
  }
  buffered_count_ = 0;
}

}  // namespace rdmacc
