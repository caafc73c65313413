// Early locks, as one of Door's transactions takes them where many do (DoorOptions::lock_percent):
// beside writers, over savepoints, and with or without a write of the row.
#include "tests/sim/door/door_transaction.h"

namespace rdmacc {
namespace {

constexpr int kLooksMax = 40;  // at a lock of another: the wait may be one of a circle
constexpr uint64_t kLookUsMax = 20, kHoldUsMax = 60, kGoneUsMax = 300;

}  // namespace

// A lock of another transaction may be waited for, or not: the attempt has not lost by it.
Status DoorTransaction::patiently(const std::function<Status()>& operation) {
  Status status = operation();
  if (around_.options.lock_percent == 0) return status;
  for (int look = 0; look < kLooksMax && is_held_by_another(reason_of(status)); ++look) {
    if (random_.percent(5)) return status;
    session_.scheduler().sleep_for(random_.below(kLookUsMax));
    status = operation();
  }
  return status;
}

Status DoorTransaction::lock_early(const Place& place) {
  if (random_.percent(40)) savepoints_.push_back({session_.savepoint(), own_});
  note(DoorOp::kTryLock, place.first);
  const RowLockMode mode = random_.percent(80)   ? RowLockMode::kExclusive
                           : random_.percent(70) ? RowLockMode::kShare
                           : random_.percent(50) ? RowLockMode::kKeyShare
                                                 : RowLockMode::kNone;
  RowLock result = RowLock::kBusy;
  const Status locked = patiently([&]() -> Status {
    Result<RowLock> tried = session_.try_lock(place.first, place.second, mode);
    if (!tried.ok()) return tried.status();
    result = *tried;
    return result == RowLock::kBusy ? aborted(AbortReason::kLockHeld) : Status();
  });
  // Without the lock it goes on, or begins anew.
  if (!locked.ok() && (result != RowLock::kBusy || random_.percent(50))) return locked;
  if (result == RowLock::kGot) RDMACC_RETURN_IF_ERROR(use_locked(place));
  return !savepoints_.empty() && random_.percent(30) ? end_level(place.first) : Status();
}

// What was locked is there; it is written, or not.
Status DoorTransaction::use_locked(const Place& place) {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session_.get(place.first, place.second, view));
  RDMACC_RETURN_IF_ERROR(check_row(place, view));
  if (!view.found && !own_.contains(place)) {
    return Status(Code::kCorrupt, "a row that was got is absent: " + place.second);
  }
  session_.scheduler().sleep_for(random_.below(kHoldUsMax));
  if (random_.percent(40)) return Status();
  return write(random_.percent(70) ? DoorOp::kPut : DoorOp::kRemove, place);
}

// What was read of the rows still counts: others write them meanwhile, and what else they have
// written is read now.
Status DoorTransaction::let_go() {
  RDMACC_RETURN_IF_ERROR(session_.let_go());
  session_.scheduler().sleep_for(random_.below(kGoneUsMax));
  return get_many();
}

}  // namespace rdmacc
