#pragma once
#include "engine/txn/driver/driver.h"
#include "engine/txn/stages/first_look_at.h"

// The first look at keys where verbs are carried out in place, compiled for each rule that reads,
// in its protocol's file: key by key, since there is nothing to wait for.

namespace rdmacc {

// What is not simply there: the rounds of a key's record go on, and what they come to is judged
// later. False: it ends the look at the keys, with `status`.
template <typename RuleType>
[[gnu::noinline]] bool read_on(StageContext& context, FirstLook& first, RuleType rule,
                               KeyState& key, const Access& seen, const InPlaceRounds& begun,
                               InPlaceRounds::End end, Status& status) {
  using End = InPlaceRounds::End;
  *key.tuple = seen;  // whatever was locked is noted
  RecordState state;
  state.access = key.tuple;
  state.record_bytes = first.table().record_size;
  state.history = first.table().history;
  state.record = context.arena.allocate(state.record_bytes);  // the room is the next key's
  if (end == End::kLost) status = DoorbellBatch::unreachable();
  if (state.record == nullptr && status.ok()) status = cannot_go_on(begun);
  if (!status.ok()) return false;
  memcpy(state.record, first.room(), state.record_bytes);
  if (end == End::kAccepted) {
    uint64_t observed = 0;  // it was heard of
    state.end = RecordState::End::kDone;
    state.accepted = begun.accepted(observed);
  } else if (end == End::kStale) {
    state.end = RecordState::End::kStale;
  }
  RecordState& record = first.judge_later(key, state);
  Driver<RuleType> driver(context, rule, std::span(&record, 1));
  status = driver.go_on_with(record, begun);
  return status.ok() && !driver.aborted();
}

// Along the chain, as far as it is short. False: the node is not there.
template <typename Port>
[[gnu::always_inline]] inline bool find_header(Port& port, const FirstLook& first, uint64_t hash,
                                               FirstLook::Place& place) {
  for (uint32_t i = 0; i < FirstLook::kBucketsMax && !place.bucket.null(); ++i) {
    const auto at = port.find_within(place.bucket, sizeof(Bucket));
    if (port.lost(at)) return false;
    Bucket bucket;
    port.read_line(at, &bucket, WordOrder::kAscending);
    if (port.failed()) return false;
    first.choose_entry(hash, bucket, place);
  }
  if (!place.header.null()) port.prefetch_slot(place.header);
  return true;
}

// The key's record, which nearly always is whole in its slot and accepted in the first rounds.
// False: the look at the keys ends, with `status`.
template <int kRounds, typename Port, typename RuleType>
[[gnu::always_inline]] inline bool read_slot(Port& port, StageContext& context, FirstLook& first,
                                             RuleType rule, KeyState& key, GlobalAddress header,
                                             uint64_t& observed, Status& status) {
  using End = InPlaceRounds::End;
  const uint32_t record_bytes = first.table().record_size;
  const auto slot = port.find_within(header, kOffsetOfRecord + record_bytes);
  Access access;
  access.header = header;
  access.table = first.table().id;
  access.key_hash = key.hash;
  std::byte* const record = first.room();
  InPlaceRounds rounds;
  End end = End::kLost;
  if (!port.lost(slot)) [[likely]] {
    end = run_rounds<kRounds>(port, rule, context, slot, access, record, record_bytes, rounds);
  }
  if (end == End::kAccepted) [[likely]] {
    const RecordState::Accepted accepted = rounds.accepted(observed);
    if (!rounds.waiting && FirstLook::is_whole(key, accepted, record, record_bytes)) [[likely]] {
      first.keep(key, accepted, access);
      Access& kept = *key.tuple;
      kept.header = access.header;
      kept.key_hash = access.key_hash;
      kept.read_wts = access.read_wts;
      kept.locked_wts = access.locked_wts;
      kept.lease = access.lease;
      kept.table = access.table;
      kept.incarnation = access.incarnation;
      kept.reader_count = access.reader_count;
      kept.read = true;
      kept.locked = access.locked;
      if (access.registered) kept.registered = true;
      DCHECK(!access.early && !access.lease_locked);  // no read takes such a lock
      first.take_room(key, accepted.length);
      return true;
    }
  }
  const InPlaceRounds begun = rounds;
  const Access seen = access;
  return read_on(context, first, rule, key, seen, begun, end, status);
}

template <int kRounds, typename Port, typename RuleType>
[[gnu::always_inline]] inline Status look_in_place(Port& port, StageContext& context,
                                                   FirstLook& first, RuleType rule) {
  CHECK(first.room() != nullptr && first.table().record_size <= kRecordInlineMax);
  port.await_prefetched();
  KeyState* const* const keys = first.keys().data();
  const size_t count = first.keys().size();
  FirstLook::Place* const places = first.places();
  for (size_t i = 0; i < count; ++i) {
    if (!find_header(port, first, keys[i]->hash, places[i])) return DoorbellBatch::unreachable();
  }
  port.end_round();  // the records are another, as they are over a network
  port.await_prefetched();
  if (context.is_cancelled()) return Status(Code::kCancelled);
  Status status;
  uint64_t observed = 0;  // the latest stamp
  for (size_t i = 0; i < count; ++i) {
    if (places[i].header.null()) continue;  // left to the walk
    if (!read_slot<kRounds>(port, context, first, rule, *keys[i], places[i].header, observed,
                            status)) {
      break;
    }
  }
  context.engine.clock.observe(observed);
  port.end_round();
  return status;
}

template <int kRounds, typename RuleType>
[[gnu::flatten]] Status look_in_place_by(StageContext& context, RuleType rule, FirstLook& first) {
  return with_port_in_place(
      context, [&](auto& port) { return look_in_place<kRounds>(port, context, first, rule); });
}

template <Rule kRule, int kRounds>
Status look_in_place_fixed(StageContext& context, Rule, FirstLook& first) {
  const auto rule = [](const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
    return kRule(access, seen, txn);
  };
  return look_in_place_by<kRounds>(context, rule, first);
}

// A rule that reads, with all that carries it out; kRounds: how many rounds it usually takes where
// nothing is in its way.
template <Rule kRule, int kRounds = 1>
constexpr StageRule read_by{kRule, drive_fixed<kRule>, look_in_place_fixed<kRule, kRounds>};

}  // namespace rdmacc
