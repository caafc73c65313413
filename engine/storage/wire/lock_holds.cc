#include "engine/storage/wire/lock_holds.h"

#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {
namespace {

LockHold of_ctts(uint64_t ctts, bool granted) {
  LockHold hold;
  hold.granted = granted;
  hold.worker = static_cast<WorkerId>(ctts);
  hold.since_us = ctts >> 16;
  return hold;
}

}  // namespace

std::vector<LockHold> holds_of(const LockedHeader& header) {
  std::vector<LockHold> holds;
  if (header.lock > kReadersMax) {
    holds.push_back(of_ctts(ctts_of_lock(header.lock), true));
  } else if (header.lock != 0) {
    LockHold& shared = holds.emplace_back();
    shared.shared = true;
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
