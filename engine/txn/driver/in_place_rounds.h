#pragma once
#include "engine/txn/driver/drive.h"
#include "rdma/base/check.h"
#include "rdma/coroutine/in_place.h"

namespace rdmacc {

// Notes what a CAS that found what it expected has changed. True: the transaction waits now.
inline bool note_won_cas(const StageContext& context, const Step& step, Access& access,
                         bool& newly_locked) {
  if (step.word == kOffsetOfLock) {
    newly_locked = step.expected != step.desired;
    if (ctts_of_lock(step.desired) == context.stamps.ctts) {
      access.locked = true;
      access.early = locked_early(step.desired);
      access.reader_count = 0;  // the CAS expected no others
    } else {
      access.reader_count++;
    }
    return false;
  }
  if (step.word == kOffsetOfWaiter) {
    if (!context.rules.registers_readers) return true;
    access.registered = newly_locked = true;
    return false;
  }
  if (context.rules.note_cas != nullptr) {
    const HeldLease lease = context.rules.note_cas(step.word, step.expected, step.desired);
    access.lease_locked = lease.locked;
    access.lease = lease.word;
  }
  return false;
}

// What the first rounds of a rule on one record came to, where verbs are carried out in place:
// nearly always these are all. What takes longer, waits, or wants other verbs is the driver's to go
// on with, from here.
struct InPlaceRounds {
  enum class End : uint8_t {
    kNothing,   // the rule had nothing to do
    kAccepted,  // by the rule
    kStale,     // the header is not what the access means
    kOpen,      // `next` is to be judged, and what follows
    kLost,      // the node did not carry out the verbs
  };
  static constexpr int kVerbs = kCas | kPreRead | kReadRecord | kPostRead;

  HeaderSnapshot seen;
  Step next;                         // kOpen
  int16_t version = kNewestVersion;  // kAccepted
  uint64_t lease = 0;                // likewise
  bool newly_locked = false;
  bool waiting = false;        // the header's waiter word holds this transaction's ctts
  uint16_t latest = kNoVerbs;  // which READ of the header was the last
  int rounds = 0;

  const Header& header() const { return latest == kPostRead ? seen.post_read : seen.pre_read; }
  // As the rule has accepted it: no old version. `observed` is raised to the header's stamps, of
  // which the clock is to hear.
  [[gnu::always_inline]] RecordState::Accepted accepted(uint64_t& observed) const {
    CHECK(latest != kNoVerbs);  // no rule is done before it has seen a header
    const Header& last = header();
    observed = std::max(observed, std::max(last.wts, last.rts));
    const bool came_later = version == kBeforeFirstVersion;
    return {last.wts,    last.key_hash, lease,
            last.waiter, last.length,   last.flags | (came_later ? kFlagDeleted : 0)};
  }
};

// Carries out what a rule asks for, once. False: it asks for other verbs. `record`: where the
// newest record goes.
template <typename Port>
[[gnu::always_inline]] inline bool carry_out_step(Port& port, const Step& step,
                                                  const typename Port::Place& slot,
                                                  std::byte* record, uint32_t record_bytes,
                                                  HeaderSnapshot& seen) {
  if ((step.verbs & ~InPlaceRounds::kVerbs) != 0) return false;
  if ((step.verbs & kCas) != 0) {
    seen.cas_seen = port.compare_swap(slot, step.word, step.expected, step.desired);
  }
  if ((step.verbs & kPreRead) != 0) {
    port.read_line(slot, &seen.pre_read, WordOrder::kAscending);
  }
  if ((step.verbs & kReadRecord) != 0 && record_bytes != 0) {
    port.read(slot, kOffsetOfRecord, record, record_bytes);
  }
  if ((step.verbs & kPostRead) != 0) {
    port.read_line(slot, &seen.post_read, WordOrder::kDescending);
  }
  return true;
}

// What the rule says to what `step` has seen, and the rounds that follow, kRounds with this one.
template <int kRounds, typename Port, typename RuleType>
[[gnu::always_inline]] inline InPlaceRounds::End judge_step(
    Port& port, const RuleType& rule, const StageContext& context, const Step step,
    const typename Port::Place& slot, Access& access, std::byte* record, uint32_t record_bytes,
    InPlaceRounds& rounds) {
  using End = InPlaceRounds::End;
  HeaderSnapshot& seen = rounds.seen;
  ++rounds.rounds;
  if (port.failed()) return End::kLost;
  if ((step.verbs & kCas) != 0) {
    if (seen.cas_seen == step.expected) {
      if (note_won_cas(context, step, access, rounds.newly_locked)) rounds.waiting = true;
    } else if (step.word == kOffsetOfLock && seen.cas_seen == context.stamps.ctts) {
      access.locked = true;  // two operations of one batch have met on one gap header
    }
  }
  if ((step.verbs & kPreRead) != 0) {
    if (!same_identity(access, seen.pre_read)) return End::kStale;
    rounds.latest = kPreRead;
  }
  if ((step.verbs & kPostRead) != 0) {
    if (!same_identity(access, seen.post_read)) return End::kStale;
    rounds.latest = kPostRead;
  }
  seen.posted = step;
  const Step after = rule(access, &seen, context.stamps);
  if (after.verdict == Verdict::kDone) {
    access.incarnation = rounds.header().incarnation;
    rounds.version = after.version;
    rounds.lease = after.lease_or(seen.pre_read.sundial);
    return End::kAccepted;
  }
  if constexpr (kRounds > 1) {
    if (after.verdict == Verdict::kTry &&
        carry_out_step(port, after, slot, record, record_bytes, seen)) {
      return judge_step<kRounds - 1>(port, rule, context, after, slot, access, record, record_bytes,
                                     rounds);
    }
  }
  rounds.next = after;
  return End::kOpen;
}

// Carries out these rounds, kRounds at most, from `step` on. All that they see is in variables
// of a caller into which they are compiled, for its rule and port: nothing else has their address,
// so that most of them live in registers.
template <int kRounds, typename Port, typename RuleType>
[[gnu::always_inline]] inline InPlaceRounds::End go_rounds(
    Port& port, const RuleType& rule, const StageContext& context, const Step step,
    const typename Port::Place& slot, Access& access, std::byte* record, uint32_t record_bytes,
    InPlaceRounds& rounds) {
  if (!carry_out_step(port, step, slot, record, record_bytes, rounds.seen)) {
    rounds.next = step;
    return InPlaceRounds::End::kOpen;
  }
  return judge_step<kRounds>(port, rule, context, step, slot, access, record, record_bytes, rounds);
}

// Of what verbs fill, a rule looks at these words before one has.
[[gnu::always_inline]] inline void see_nothing_yet(HeaderSnapshot& seen) {
  seen.pre_read.wts = seen.pre_read.rts = seen.pre_read.sundial = 0;
  seen.cas_seen = 0;
}

template <int kRounds, typename Port, typename RuleType>
[[gnu::always_inline]] inline InPlaceRounds::End run_rounds(
    Port& port, const RuleType& rule, const StageContext& context, const typename Port::Place& slot,
    Access& access, std::byte* record, uint32_t record_bytes, InPlaceRounds& rounds) {
  see_nothing_yet(rounds.seen);
  const Step step = rule(access, nullptr, context.stamps);
  if (step.verdict == Verdict::kDone) return InPlaceRounds::End::kNothing;
  return go_rounds<kRounds>(port, rule, context, step, slot, access, record, record_bytes, rounds);
}

// There is no registered memory to go on with. A waiter word that may have been left has to be
// looked for, as after a lost node.
inline Status cannot_go_on(const InPlaceRounds& begun) {
  return begun.waiting ? DoorbellBatch::unreachable() : out_of_registered_memory();
}

// Does `work` with the port on which this worker's verbs are carried out in place.
template <typename Work>
Status with_port_in_place(StageContext& context, const Work& work) {
  Scheduler& scheduler = context.engine.worker.scheduler();
  if (scheduler.mapped() != nullptr) {
    MappedPort port(scheduler, context.counters);
    return work(port);
  }
  CHECK(scheduler.port() == Endpoint::Port::kOneByOne);
  std::byte* registered = context.arena.allocate(SteppedPort::kBytes);
  if (registered == nullptr) return out_of_registered_memory();
  SteppedPort port(scheduler, context.counters, registered);
  return work(port);
}

}  // namespace rdmacc
