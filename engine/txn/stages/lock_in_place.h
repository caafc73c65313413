#pragma once
#include "engine/txn/driver/driver.h"
#include "engine/txn/stages/lock.h"

// The locks of a commit where verbs are carried out in place, compiled for each rule that locks
// what was read without a lock, in its protocol's file: header by header, in nothing but registers
// as long as nothing is in the way.

namespace rdmacc {

// What the lock covers. Not ok: a slot that is no row's any more.
[[gnu::always_inline]] inline Status note_covered(const RecordState::Accepted& accepted,
                                                  LockWork& work) {
  if ((accepted.flags & (kFlagLive | kFlagGap)) == 0) return aborted(AbortReason::kStaleLocation);
  work.access->locked_wts = accepted.wts;
  work.waiter = accepted.waiter;
  return Status();
}

// The rule is not done with the header after its first rounds.
template <typename RuleType>
[[gnu::noinline]] Status lock_on(StageContext& context, RuleType rule, LockWork& work,
                                 const InPlaceRounds& begun, InPlaceRounds::End end) {
  using End = InPlaceRounds::End;
  if (end == End::kLost) return DoorbellBatch::unreachable();
  RecordState record;
  record.access = work.access;
  if (end == End::kStale) record.end = RecordState::End::kStale;
  if (end == End::kNothing) return Status();
  if (end == End::kAccepted) {
    uint64_t observed = 0;
    record.end = RecordState::End::kDone;
    record.accepted = begun.accepted(observed);
    context.engine.clock.observe(observed);
  }
  RDMACC_RETURN_IF_ERROR(
      Driver<RuleType>(context, rule, std::span(&record, 1)).go_on_with(record, begun));
  RDMACC_RETURN_IF_ERROR(outcome_of(std::span(&record, 1)));
  return note_covered(record.accepted, work);
}

// What is locked, but leased to others: gone on with once the rest is locked, so that all that
// waits for the clock waits together.
using AwaitedLocks = boost::container::small_vector<LockWork*, 16>;

template <typename RuleType>
[[gnu::noinline]] Status lock_later(StageContext& context, RuleType rule, LockWork& work,
                                    const InPlaceRounds& begun, InPlaceRounds::End end,
                                    AwaitedLocks& awaited) {
  const bool waits = end == InPlaceRounds::End::kOpen && (begun.next.verbs & kAwait) != 0;
  if (!waits) return lock_on(context, rule, work, begun, end);
  awaited.push_back(&work);
  return Status();
}

template <typename RuleType>
[[gnu::noinline]] Status await_locked(StageContext& context, RuleType rule,
                                      const AwaitedLocks& awaited) {
  for (LockWork* work : awaited) {
    RecordState record;
    record.access = work->access;
    RDMACC_RETURN_IF_ERROR(Driver<RuleType>(context, rule, std::span(&record, 1)).run());
    RDMACC_RETURN_IF_ERROR(outcome_of(std::span(&record, 1)));
    RDMACC_RETURN_IF_ERROR(note_covered(record.accepted, *work));
  }
  return Status();
}

template <int kRounds, typename Port, typename RuleType>
Status lock_in_place(Port& port, StageContext& context, RuleType rule, std::span<LockWork> works) {
  using End = InPlaceRounds::End;
  constexpr size_t kPart = 32;  // between two looks at what else there is to do
  for (const LockWork& work : works) port.prefetch(work.access->header, sizeof(Header));
  if (works.size() > 1) port.await_prefetched();
  uint64_t observed = 0;
  size_t done = 0;
  AwaitedLocks awaited;
  Status status;
  for (LockWork& work : works) {
    Access& access = *work.access;
    if (context.rules.locked_whole(access)) continue;
    if (++done % kPart == 0) port.end_round();
    if (context.is_cancelled()) return Status(Code::kCancelled);
    // Where it was read, or a node said that it is: within the region.
    const auto slot = port.find_within(access.header, sizeof(Header));
    InPlaceRounds rounds;
    End end = End::kLost;
    if (!port.lost(slot)) {
      end = run_rounds<kRounds>(port, rule, context, slot, access, nullptr, 0, rounds);
    }
    if (end == End::kAccepted && !rounds.waiting) [[likely]] {
      status = note_covered(rounds.accepted(observed), work);
    } else {
      const InPlaceRounds begun = rounds;
      status = lock_later(context, rule, work, begun, end, awaited);
    }
    if (!status.ok()) break;
  }
  if (!awaited.empty() && status.ok()) status = await_locked(context, rule, awaited);
  context.engine.clock.observe(observed);
  if (done > 0) port.end_round();
  return status;
}

template <Rule kRule, int kRounds>
[[gnu::flatten]] Status lock_in_place_fixed(StageContext& context, Rule,
                                            std::span<LockWork> works) {
  const auto rule = [](const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
    return kRule(access, seen, txn);
  };
  return with_port_in_place(
      context, [&](auto& port) { return lock_in_place<kRounds>(port, context, rule, works); });
}

// A rule that locks, with all that carries it out; kRounds: how many rounds it takes where nothing
// is in its way.
template <Rule kRule, int kRounds = 1>
constexpr StageRule locked_by = driven_by<kRule>.that_locks(lock_in_place_fixed<kRule, kRounds>);

}  // namespace rdmacc
