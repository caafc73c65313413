#include "engine/storage/lock_holds.h"

#include "engine/storage/sundial_word.h"

namespace rdmacc {
namespace {

// Below are no ctts but counts of those who share the lock: a ctts has microseconds above its
// worker id.
constexpr uint64_t kCttsMin = 1 << 16;

LockHold of_ctts(uint64_t ctts, bool granted) {
  LockHold hold;
  hold.granted = granted;
  hold.worker = static_cast<WorkerId>(ctts);
  hold.since_us = ctts >> 16;
  return hold;
}

}  // namespace

const char* hold_mode_name(LockHold::Mode mode) {
  return mode == LockHold::Mode::kShared ? "shared" : "exclusive";
}

std::vector<LockHold> holds_of(const LockedHeader& header) {
  std::vector<LockHold> holds;
  if (header.lock >= kCttsMin) {
    holds.push_back(of_ctts(header.lock, true));
  } else if (header.lock != 0) {
    LockHold& shared = holds.emplace_back();
    shared.mode = LockHold::Mode::kShared;
    shared.holders = static_cast<uint32_t>(header.lock);
  }
  // The owner's split locks a group by both words.
  const auto sundial_holder = static_cast<WorkerId>(header.sundial);
  if (sundial_locked(header.sundial) &&
      (holds.empty() || holds[0].worker.value_or(kNoWorker) != sundial_holder)) {
    holds.emplace_back().worker = sundial_holder;
  }
  if (header.waiter != 0) holds.push_back(of_ctts(header.waiter, false));
  return holds;
}

}  // namespace rdmacc
