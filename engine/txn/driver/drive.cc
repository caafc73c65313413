#include "engine/txn/driver/drive.h"

#include "engine/storage/layout/control_area.h"
#include "engine/txn/driver/driver_base.h"

namespace rdmacc {
namespace {

GlobalAddress wound_of(const RegionLayout& layout, uint64_t ctts) {
  return GlobalAddress::make(0, layout.txn_slot(ctts) + offsetof(TxnSlot, wound));
}

}  // namespace

Status DriverBase::take_snapshots() {
  const auto lacking = static_cast<size_t>(
      std::count_if(records_.begin(), records_.end(),
                    [](const RecordState& record) { return record.snapshot == nullptr; }));
  if (lacking == 0) return Status();
  auto* snapshot = context_.arena.allocate_array<HeaderSnapshot>(lacking);
  if (snapshot == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    if (record.snapshot != nullptr) continue;
    DCHECK(snapshot != nullptr);
    record.snapshot = snapshot++;
  }
  return Status();
}

Status DriverBase::make_room(RecordState& record, const Step& step) {
  DCHECK(lacks_room(record, step));
  HeaderSnapshot& snapshot = *record.snapshot;
  if ((step.verbs & kReadRecord) != 0 && record.record == nullptr && record.record_bytes > 0) {
    std::byte* memory = context_.arena.allocate(RecordState::memory_bytes(record.record_bytes));
    if (memory == nullptr) return out_of_registered_memory();
    record.use_memory(memory);
  }
  if ((step.verbs & kReadVersion) != 0 && record.version == nullptr) {
    record.version = context_.arena.allocate(sizeof(VersionHead) + record.record_bytes);
    if (record.version == nullptr) return out_of_registered_memory();
  }
  if ((step.verbs & kReadStamps) != 0 && snapshot.versions == nullptr && record.history > 0) {
    snapshot.versions = context_.arena.allocate_array<VersionHead>(record.history);
    if (snapshot.versions == nullptr) return out_of_registered_memory();
  }
  return Status();
}

// What VerbSavings::one_cas saves. What is found is not judged: the CAS that follows is.
Status DriverBase::look_before_locking(std::span<const Step> steps) {
  CHECK(steps.size() == records_.size());
  for (size_t i = 0; i < records_.size(); i++) {
    const bool locks = (steps[i].verbs & kCas) != 0 && steps[i].word == kOffsetOfLock;
    if (pending(records_[i]) && locks) post(records_[i], Step::attempt(kPreRead));
  }
  return batch_.execute();
}

void DriverBase::post_wounds(RecordState& record, const Step& step) {
  const RegionLayout& layout = context_.engine.layout;
  HeaderSnapshot& snapshot = *record.snapshot;
  const WorkerId holder = worker_of_ctts(step.desired);
  // What a dead node's memory left in a lock word need not be a transaction.
  if ((step.verbs & kWound) != 0 && holder < context_.engine.topology.workers_max) {
    snapshot.wounded = step.desired;
    batch_.write(wound_of(layout, step.desired), &snapshot.wounded, sizeof(snapshot.wounded));
  }
  if ((step.verbs & kReadWound) != 0) {
    const uint64_t self = context_.stamps.ctts;
    CHECK(locked_exclusively(self));
    batch_.read(wound_of(layout, self), &snapshot.wound, sizeof(snapshot.wound));
  }
}

// What is over by the cluster's clock, wherever its bounds have it.
uint64_t DriverBase::over_us() const {
  const uint64_t earliest_us = context_.engine.worker.endpoint().clock_bounds().earliest_us;
  return earliest_us - std::min<uint64_t>(earliest_us, 1);
}

// Between two looks. Where all wait for the clock nothing comes before that; in parts, because a
// transaction may be cancelled.
void DriverBase::pause(std::span<const Step> steps, int looks) const {
  constexpr uint64_t kPartUs = 500;
  uint64_t until_us = 0;
  for (const Step& step : steps) {
    if (step.verdict != Verdict::kLookAgain) continue;
    if ((step.verbs & kAwait) == 0) return context_.backoff(looks);
    until_us = std::max(until_us, step.desired);
  }
  const uint64_t over = over_us();
  if (over >= until_us) return;
  context_.engine.worker.scheduler().sleep_for(std::min(until_us - over + 1, kPartUs));
}

// What leads nowhere is no reference.
void DriverBase::check_reference(RecordState& record) const {
  uint64_t& at = record.snapshot->versions_at;
  const uint64_t region_bytes = context_.engine.layout.region_bytes;
  if (at == kNoOlderVersion) return;
  if (!may_be_versions(at, record.record_bytes, record.history, region_bytes)) {
    at = kOlderVersionsLost;
  }
}

// Which other transaction has the record locked, early or not, as the last round has seen it; 0:
// none that is named.
uint64_t DriverBase::holder_of(const RecordState& record) const {
  const HeaderSnapshot& seen = *record.snapshot;
  const bool tried = (seen.posted.verbs & kCas) != 0 && seen.posted.word == kOffsetOfLock;
  const uint64_t latest = record.latest != nullptr ? record.latest->lock : 0;
  const uint64_t lock = tried ? seen.cas_seen : latest;
  const uint64_t holder = ctts_of_lock(lock);
  return locked_exclusively(lock) && holder != context_.stamps.ctts ? holder : 0;
}

// The same, if it is of this coordinator.
uint64_t DriverBase::holder_here(const RecordState& record) const {
  const uint64_t holder = holder_of(record);
  return worker_of_ctts(holder) == worker_of_ctts(context_.stamps.ctts) ? holder : 0;
}

// True: a transaction of this coordinator had the lock, and has ended. One that has left its locks
// to resolution has them still, for as long as this coordinator lives.
bool DriverBase::waits_for_holder(RecordState& record, const Step& step) const {
  const bool held = step.verdict == Verdict::kAbort &&
                    (step.reason == AbortReason::kLockHeld || step.reason == AbortReason::kDied);
  if (!held || context_.place == nullptr) return false;
  const uint64_t holder = holder_here(record);
  if (holder == 0 || holder == record.waited_for) return false;
  record.waited_for = holder;
  return context_.place->wait_for(holder);
}

// It waits outside of the engine, perhaps for what this transaction has there. Asked now and then:
// that costs more than a look at the lock.
bool DriverBase::holder_stands_still(RecordState& record, int looks) const {
  constexpr int kLooksBetween = 64;  // some 10 ms
  constexpr int kStandstills = 2;
  const StandstillOf standstill_of = context_.engine.standstill_of;
  if (standstill_of == nullptr || looks == 0 || looks % kLooksBetween != 0) return false;
  const uint64_t holder = holder_of(record);
  const bool named = holder != 0 && !is_cleaning_lock(holder);
  const bool stands = named && standstill_of(worker_of_ctts(holder)) == Standstill::kForLock;
  record.standing = stands ? static_cast<uint8_t>(record.standing + 1) : uint8_t{0};
  return record.standing >= kStandstills;
}

void DriverBase::give_up(RecordState& record, const Step& step) {
  DCHECK(pending(record) && step.verdict != Verdict::kDone);
  record.end = RecordState::End::kAbort;
  record.reason = step.verdict == Verdict::kAbort        ? step.reason
                  : context_.rules.locks_what_it_reads() ? AbortReason::kWaitedTooLong
                                                         : AbortReason::kReadUnstable;
  context_.engine.clock.observe(
      std::max(record.snapshot->pre_read.wts, record.snapshot->pre_read.rts));
  if (context_.place != nullptr) context_.place->lost_to = holder_here(record);
  if (context_.held_by != nullptr) *context_.held_by = holder_of(record);
  aborted_ = true;
  waits_ = waits_ || record.reason == AbortReason::kWounded;
}

// A transaction that stops waiting, with the lock or without, leaves no waiter word behind; and one
// that gives way no wound, which would be its next attempt's, of the same ctts.
Status DriverBase::stop_waiting() {
  for (RecordState& record : records_) {
    if (record.reason == AbortReason::kWounded) {
      const uint64_t self = context_.stamps.ctts;
      record.snapshot->wounded = 0;
      batch_.write(wound_of(context_.engine.layout, self), &record.snapshot->wounded,
                   sizeof(uint64_t));
    }
    if (!record.waiting) continue;
    record.waiting = false;
    batch_.compare_swap(record.access->header.plus(kOffsetOfWaiter), context_.stamps.ctts, 0,
                        &record.snapshot->cas_seen);
  }
  return batch_.execute();
}

Status outcome_of(std::span<const RecordState> records) {
  bool stale = false;
  for (const RecordState& record : records) {
    if (record.end == RecordState::End::kAbort) return aborted(record.reason);
    stale = stale || record.end == RecordState::End::kStale;
  }
  return stale ? aborted(AbortReason::kStaleLocation) : Status();
}

}  // namespace rdmacc
