#include "engine/txn/drive.h"

namespace rdmacc {
namespace {

// How often a rule may say "look again" before the transaction gives way. Writers hold a lock for
// a few rounds, so this is long; it bounds the wait for a lock whose owner has died.
constexpr int kLooksMax = 200;
constexpr uint64_t kPauseUsMax = 200;

void post(DoorbellBatch& batch, const Driven& record, const Step& step) {
  const GlobalAddress header = record.access->header;
  Look& look = *record.look;
  if ((step.verbs & kCasLock) != 0) {
    batch.compare_swap(header.plus(kOffsetOfLock), step.expected, step.desired, &look.cas_seen);
  }
  if ((step.verbs & kFirstLook) != 0) {
    batch.read(header, &look.first, sizeof(Header), WordOrder::kAscending);
  }
  if ((step.verbs & kReadRecord) != 0 && record.record_bytes != 0) {
    batch.read(header.plus(kOffsetOfRecord), record.record, record.record_bytes);
  }
  if ((step.verbs & kLastLook) != 0) {
    batch.read(header, &look.last, sizeof(Header), WordOrder::kDescending);
  }
}

// Notes what a round found; false when the header is not (any more) what the access means.
bool note(Driven& record, const Step& step, const TxnStamps& stamps) {
  Access& access = *record.access;
  const Look& look = *record.look;
  if ((step.verbs & kCasLock) != 0 && step.desired == stamps.ctts &&
      (look.cas_seen == step.expected || look.cas_seen == stamps.ctts)) {
    access.locked = true;
    record.newly_locked = record.newly_locked || look.cas_seen == step.expected;
  }
  if ((step.verbs & kFirstLook) != 0) {
    if (!same_identity(access, look.first)) return false;
    record.accepted = look.first;
  }
  if ((step.verbs & kLastLook) != 0) {
    if (!same_identity(access, look.last)) return false;
    record.accepted = look.last;
  }
  return true;
}

}  // namespace

Status drive(StageContext& context, Rule rule, std::span<Driven> records) {
  std::vector<Step> steps(records.size());
  size_t pending = 0;
  for (size_t i = 0; i < records.size(); i++) {
    Driven& record = records[i];
    if (record.look == nullptr) record.look = context.arena.allocate_array<Look>(1);
    if (record.look == nullptr) return Status(Code::kNoSpace, "registered memory is used up");
    steps[i] = rule(*record.access, nullptr, context.stamps);
    CHECK(steps[i].verdict == Verdict::kTry);
    pending++;
  }
  DoorbellBatch batch = context.batch();
  bool stop = false;
  for (int looks = 0; pending > 0 && !stop; looks++) {
    if (context.is_cancelled()) return Status(Code::kCancelled);
    bool paused = looks > 0;
    for (size_t i = 0; i < records.size(); i++) {
      if (records[i].end != Driven::End::kPending) continue;
      paused = paused && steps[i].verdict == Verdict::kLookAgain;
      post(batch, records[i], steps[i]);
    }
    if (paused) {
      // Everyone waits for somebody else: give way, longer each time.
      context.engine.worker.scheduler().sleep_for(
          std::min<uint64_t>(static_cast<uint64_t>(looks), kPauseUsMax));
    }
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (size_t i = 0; i < records.size(); i++) {
      Driven& record = records[i];
      if (record.end != Driven::End::kPending) continue;
      if (!note(record, steps[i], context.stamps)) {
        // A lost CAS on a foreign header is a conflict like any other for a rule that does not
        // wait, but the location is wrong in the first place.
        record.end = Driven::End::kStale;
        pending--;
        continue;
      }
      steps[i] = rule(*record.access, record.look, context.stamps);
      if (steps[i].verdict == Verdict::kDone) {
        record.end = Driven::End::kDone;
        record.access->incarnation = record.accepted.incarnation;
        context.engine.clock.observe(record.accepted.wts);
        pending--;
      } else if (steps[i].verdict == Verdict::kAbort ||
                 (steps[i].verdict == Verdict::kLookAgain && looks >= kLooksMax)) {
        record.end = Driven::End::kAbort;
        record.reason =
            steps[i].verdict == Verdict::kAbort ? steps[i].reason : AbortReason::kReadUnstable;
        pending--;
        stop = true;
      }
    }
  }
  return Status();
}

Status outcome_of(std::span<const Driven> records) {
  bool stale = false;
  for (const Driven& record : records) {
    if (record.end == Driven::End::kAbort) return aborted(record.reason);
    stale = stale || record.end == Driven::End::kStale;
  }
  return stale ? aborted(AbortReason::kStaleLocation) : Status();
}

}  // namespace rdmacc
