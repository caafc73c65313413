#pragma once
#include "engine/txn/driver/driver.h"
#include "engine/txn/rule/scanned_read.h"

// Validation where verbs are carried out in place, compiled for each rule that validates, in its
// protocol's file: header by header, in nothing but registers as long as all is as it was.

namespace rdmacc {

// What a header that does not hold means for its transaction.
inline Status outcome_of_check(const RecordState& record) {
  // Another row lives there now, or the group was split: what was read is no longer current.
  if (record.end == RecordState::End::kStale) {
    return aborted(record.access->gap ? AbortReason::kIndexMoved : AbortReason::kValidationFailed);
  }
  return record.end == RecordState::End::kAbort ? aborted(record.reason) : Status();
}

// Where old versions are, for rules that look whether one of them is what was read.
inline Status take_sizes(const StageContext& context, RecordState& record) {
  if (!context.rules.keeps_versions() || record.access->gap) return Status();
  auto table = context.table(record.access->table);
  if (!table.ok()) return table.status();
  record.record_bytes = (*table)->record_size;
  record.history = (*table)->history;
  return Status();
}

// The rule is not done with the header after its first rounds.
template <typename RuleType>
[[gnu::noinline]] Status check_on(StageContext& context, RuleType rule, Access& access,
                                  const InPlaceRounds& begun, InPlaceRounds::End end) {
  if (end == InPlaceRounds::End::kLost) return DoorbellBatch::unreachable();
  RecordState record;
  record.access = &access;
  RDMACC_RETURN_IF_ERROR(take_sizes(context, record));
  if (end == InPlaceRounds::End::kStale) record.end = RecordState::End::kStale;
  if (end == InPlaceRounds::End::kAccepted) record.end = RecordState::End::kDone;
  RDMACC_RETURN_IF_ERROR(
      Driver<RuleType>(context, rule, std::span(&record, 1)).go_on_with(record, begun));
  return outcome_of_check(record);
}

// What is checked: accesses of the transaction, or reads, which are made one while they are looked
// at.
struct AccessesToCheck {
  std::span<Access* const> all;
  bool is_none(size_t) const { return false; }
  GlobalAddress header(size_t i) const { return all[i]->header; }
  Access& access(size_t i) const { return *all[i]; }
};
struct ReadsToCheck {
  TableId table;
  std::span<const ScannedRead> all;
  bool is_none(size_t i) const { return all[i].header.null(); }  // it was taken out
  GlobalAddress header(size_t i) const { return all[i].header; }
  Access access(size_t i) const { return all[i].access(table); }
};

// Where one READ of the header is all that the rule wants, and nothing else has been seen. False:
// `seen` has it, for judge_step() to say what follows.
template <typename Port, typename RuleType>
[[gnu::always_inline]] inline bool accepts_at_once(Port& port, const RuleType& rule,
                                                   const StageContext& context,
                                                   const typename Port::Place& slot,
                                                   const Access& access, HeaderSnapshot& seen) {
  DCHECK(seen.posted.verbs == kPostRead);
  port.read_line(slot, &seen.post_read, WordOrder::kDescending);
  return !port.failed() && same_identity(access, seen.post_read) &&
         rule(access, &seen, context.stamps).verdict == Verdict::kDone;
}

template <typename Port, typename RuleType, typename Checked>
Status check_in_place(Port& port, StageContext& context, RuleType rule, const Checked& checked) {
  using End = InPlaceRounds::End;
  constexpr size_t kPart = 32;   // between two looks at what else there is to do
  constexpr size_t kAhead = 16;  // headers that are on their way here
  constexpr int kRounds = 2;     // a lease may have to be renewed
  uint64_t observed = 0;
  Status status;
  HeaderSnapshot first;
  see_nothing_yet(first);
  first.posted = Step::attempt(kPostRead);
  for (size_t i = 0; i < checked.all.size(); ++i) {
    if (i % kPart == 0 && i > 0) port.end_round();
    if (i % kPart == 0 && context.is_cancelled()) return Status(Code::kCancelled);
    if (i + kAhead < checked.all.size()) {
      port.prefetch(checked.header(i + kAhead), sizeof(Header));
    }
    if (checked.is_none(i)) continue;
    auto&& access = checked.access(i);
    // Where it was read, or a node said that it is: within the region.
    const auto slot = port.find_within(access.header, sizeof(Header));
    const Step begin = rule(access, nullptr, context.stamps);
    if (begin.verdict == Verdict::kDone) continue;
    const bool once = begin.verdict == Verdict::kTry && begin.verbs == kPostRead;
    if (once && !port.lost(slot) && accepts_at_once(port, rule, context, slot, access, first))
        [[likely]] {
      observed = std::max(observed, std::max(first.post_read.wts, first.post_read.rts));
      continue;
    }
    InPlaceRounds rounds;
    End end = End::kLost;
    if (!port.lost(slot)) {
      const Step step = rule(access, nullptr, context.stamps);  // again: `begin` is in registers
      see_nothing_yet(rounds.seen);
      if (once) {
        rounds.seen.post_read = first.post_read;
        end = judge_step<kRounds>(port, rule, context, step, slot, access, nullptr, 0, rounds);
      } else {
        end = go_rounds<kRounds>(port, rule, context, step, slot, access, nullptr, 0, rounds);
      }
    }
    if (end == End::kAccepted && !rounds.waiting) {
      static_cast<void>(rounds.accepted(observed));
      continue;
    }
    const InPlaceRounds begun = rounds;
    status = check_on(context, rule, access, begun, end);
    if (!status.ok()) break;
  }
  context.engine.clock.observe(observed);
  port.end_round();
  return status;
}

template <Rule kRule, typename Checked>
[[gnu::flatten]] Status check_in_place_by(StageContext& context, const Checked& checked) {
  const auto rule = [](const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
    return kRule(access, seen, txn);
  };
  return with_port_in_place(
      context, [&](auto& port) { return check_in_place(port, context, rule, checked); });
}

template <Rule kRule>
Status check_in_place_fixed(StageContext& context, Rule, std::span<Access* const> accesses) {
  return check_in_place_by<kRule>(context, AccessesToCheck{accesses});
}

template <Rule kRule>
Status check_reads_in_place_fixed(StageContext& context, Rule, TableId table,
                                  std::span<const ScannedRead> reads) {
  return check_in_place_by<kRule>(context, ReadsToCheck{table, reads});
}

// A rule that validates, with all that carries it out.
template <Rule kRule>
constexpr StageRule checked_by{kRule, drive_fixed<kRule>, nullptr, check_in_place_fixed<kRule>,
                               check_reads_in_place_fixed<kRule>};

}  // namespace rdmacc
