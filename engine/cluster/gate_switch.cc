// What a waiter does for the switch of the gate; the rules are in gate.h.
#include <algorithm>

#include "engine/cluster/gate.h"

namespace rdmacc {
namespace {

// All workers only raise the floor, so a lost CAS means that it rose; more often than this in one
// attempt it does not, and another poll does no harm.
constexpr int kFloorAttempts = 8;

}  // namespace

Result<bool> Gate::advance(Waiter& self, const View& view, VerbCounters& counters) {
  const GateWord word = GateWord::unpack(view.gate.word);
  note_waited_for(self, word, view.lines);
  if (word.next == 0) {
    if (word.exclusive != 0 && exclusive_lasts(self, word, view.lines)) return false;
    if (word.exclusive != 0 && word.open == self.wanted) {
      return replace(word, word.reopened(), counters);
    }
    // One that wants exclusive mode and is not the one on the line would be overlooked.
    if (self.exclusive && waiters_.front() != &self) return false;
    if (word.exclusive == 0 && must_hold_off(self, word.open, view.lines)) return false;
    return request(self, word, counters);
  }
  if (!drained(word.open, view.lines)) {
    if (overdue(self, word, view.lines)) return replace(word, word.reopened(), counters);
    return false;
  }
  return open_next(self, view, counters);
}

void Gate::note_waited_for(const Waiter& self, GateWord word, const WorkerLine* lines) {
  waited_for_.clear();
  if (word.open == 0 || word.open == self.wanted) return;
  for (WorkerId worker = 0; worker < workers_max_; ++worker) {
    if (lines[worker].inside == word.open) waited_for_.push_back(worker);
  }
}

// A line that a dead worker left may stop the drain (its transaction is not resolved yet), but
// what it waits for no longer matters.
bool Gate::alive(WorkerId worker, const WorkerLine& line) const {
  if (worker == worker_.id()) return true;
  return line.incarnation != 0 &&
         worker_.endpoint().incarnation_of(worker) == static_cast<uint32_t>(line.incarnation);
}

bool Gate::drained(uint8_t open, const WorkerLine* lines) const {
  if (open == 0) return true;
  return std::none_of(lines, lines + workers_max_,
                      [open](const WorkerLine& line) { return line.inside == open; });
}

bool Gate::must_hold_off(const Waiter& self, uint8_t open, const WorkerLine* lines) const {
  if (open == 0) return false;
  if (worker_.endpoint().now_us() - self.generation_since_us >= kHoldOffUs) return false;
  for (WorkerId worker = 0; worker < workers_max_; ++worker) {
    const WorkerLine& line = lines[worker];
    if (line.waiting_for == open && line.waiting_since_us <= self.generation_since_us &&
        alive(worker, line)) {
      return true;
    }
  }
  return false;
}

// `next` names the protocol asked for first; which gets the gate is decided when it has drained.
Result<bool> Gate::request(const Waiter& self, GateWord word, VerbCounters& counters) {
  GateWord requested = word;
  requested.next = self.exclusive ? self.wanted | kAskedExclusive : self.wanted;
  CHECK(requested.next != word.open);
  return replace(word, requested, counters);
}

// The longest waiter's protocol, but the open one only for one that wants exclusive mode, or after
// one that had it; one that was just offered it and did not come is not asked again.
Gate::Choice Gate::choose_next(const Waiter& self, const View& view) const {
  const GateWord word = GateWord::unpack(view.gate.word);
  // When all that wanted another protocol are gone, the open protocol is opened again.
  Choice choice{GateWord{word.open != 0 ? word.open : self.wanted, 0, word.generation + 1, 0}};
  for (WorkerId worker = 0; worker < workers_max_; ++worker) {
    const WorkerLine& line = view.lines[worker];
    if (line.waiting_for == 0 || line.waiting_for > UINT8_MAX) continue;
    const bool exclusive = (line.waiting_for & kAskedExclusive) != 0;
    const auto wanted = static_cast<uint8_t>(line.waiting_for & ~uint64_t{kAskedExclusive});
    const auto name = static_cast<uint16_t>(worker + 1);
    if (wanted == word.open && (exclusive ? word.exclusive == name : word.exclusive == 0)) continue;
    if (line.waiting_since_us >= choice.since_us || !alive(worker, line)) continue;
    choice.since_us = line.waiting_since_us;
    choice.word.open = wanted;
    choice.word.exclusive = exclusive ? name : uint16_t{0};
  }
  return choice;
}

Result<bool> Gate::open_next(const Waiter& self, const View& view, VerbCounters& counters) {
  CHECK(GateWord::unpack(view.gate.word).next != 0);
  const Choice choice = choose_next(self, view);
  const Result<bool> raised = raise_floor(view, counters);
  if (!raised.ok() || !raised.value()) return raised;
  const Result<bool> opened = replace(GateWord::unpack(view.gate.word), choice.word, counters);
  if (!opened.ok()) return opened;
  if (opened.value()) RDMACC_RETURN_IF_ERROR(count_opening(view.gate, choice, counters));
  return true;
}

// Before the gate opens: every ctts that was given out under the old protocol is below the floor.
// Lines tell it of those that left; a dead worker's line may be behind, but one host shares one
// clock, so that its stamps are below the time of now.
Result<bool> Gate::raise_floor(const View& view, VerbCounters& counters) {
  uint64_t floor = std::max(clock_.last(), (worker_.endpoint().now_us() << 16) | 0xFFFF);
  for (WorkerId worker = 0; worker < workers_max_; ++worker) {
    floor = std::max(floor, view.lines[worker].last_ctts);
  }
  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  if (seen == nullptr) return out_of_registered_memory();
  uint64_t expected = view.gate.ctts_floor;
  for (int attempt = 0; attempt < kFloorAttempts && expected < floor; ++attempt) {
    DoorbellBatch batch(worker_.scheduler(), counters);
    batch.compare_swap(gate_address().plus(offsetof(GateLine, ctts_floor)), expected, floor, seen);
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if (*seen == expected) return true;
    expected = *seen;
  }
  return expected >= floor;
}

// Statistics only: a maximum lost to another switcher is not tried again.
Status Gate::count_opening(const GateLine& seen, const Choice& choice, VerbCounters& counters) {
  const uint8_t was_open = GateWord::unpack(seen.word).open;
  const bool switched = was_open != 0 && choice.word.open != was_open;
  if (!switched && choice.word.exclusive == 0) return Status::ok_status();
  VerbArena arena(worker_.pool());
  auto* was = arena.allocate_array<uint64_t>(4);
  if (was == nullptr) return Status::ok_status();
  DoorbellBatch batch(worker_.scheduler(), counters);
  if (choice.word.exclusive != 0) {
    batch.fetch_add(gate_address().plus(offsetof(GateLine, exclusive_entries)), 1, was + 3);
  }
  if (switched) {
    const uint64_t now_us = worker_.endpoint().now_us();
    const uint64_t waited_us = now_us > choice.since_us ? now_us - choice.since_us : 0;
    batch.fetch_add(gate_address().plus(offsetof(GateLine, switches)), 1, was);
    batch.fetch_add(gate_address().plus(offsetof(GateLine, switch_us_sum)), waited_us, was + 1);
    if (waited_us > seen.switch_us_max) {
      batch.compare_swap(gate_address().plus(offsetof(GateLine, switch_us_max)), seen.switch_us_max,
                         waited_us, was + 2);
    }
  }
  return batch.execute();
}

}  // namespace rdmacc
