// What a waiter does for the switch of the gate; the rules are in gate.h.
#include <algorithm>

#include "engine/cluster/gate.h"

namespace rdmacc {
namespace {

// Everybody only raises the floor, so a lost CAS means that it rose; more often than this in one
// attempt it does not, and another look does no harm.
constexpr int kFloorAttempts = 8;

}  // namespace

Result<bool> Gate::advance(Waiter& self, const View& view, VerbCounters& counters) {
  const GateWord word = GateWord::unpack(view.gate.word);
  if (word.next == 0) {
    if (must_hold_off(self, word.open, view.lines)) return false;
    return request(self, word, counters);
  }
  if (!drained(word.open, view.lines)) return false;
  return open_next(self, view, counters);
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

// `next` names who asked first; who gets the gate is decided when it has drained.
Result<bool> Gate::request(const Waiter& self, GateWord word, VerbCounters& counters) {
  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  if (seen == nullptr) return out_of_registered_memory();
  const uint64_t expected = word.pack();
  word.next = self.wanted;
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.compare_swap(gate_address(), expected, word.pack(), seen);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  return *seen == expected;
}

Result<bool> Gate::open_next(const Waiter& self, const View& view, VerbCounters& counters) {
  const GateWord word = GateWord::unpack(view.gate.word);
  // When all who wanted another protocol are gone, the open one is opened again.
  uint8_t chosen = word.open != 0 ? word.open : self.wanted;
  uint64_t oldest_us = UINT64_MAX;
  for (WorkerId worker = 0; worker < workers_max_; ++worker) {
    const WorkerLine& line = view.lines[worker];
    if (line.waiting_for == 0 || line.waiting_for > UINT8_MAX) continue;
    if (line.waiting_for == word.open || line.waiting_since_us >= oldest_us) continue;
    if (!alive(worker, line)) continue;
    oldest_us = line.waiting_since_us;
    chosen = static_cast<uint8_t>(line.waiting_for);
  }
  const Result<bool> raised = raise_floor(view, counters);
  if (!raised.ok() || !raised.value()) return raised;

  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  if (seen == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.compare_swap(gate_address(), view.gate.word,
                     GateWord{chosen, 0, word.generation + 1}.pack(), seen);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  if (*seen == view.gate.word && word.open != 0 && chosen != word.open) {
    const uint64_t now_us = worker_.endpoint().now_us();
    const uint64_t waited_us = now_us > oldest_us ? now_us - oldest_us : 0;
    RDMACC_RETURN_IF_ERROR(count_switch(view.gate, waited_us, counters));
  }
  return true;
}

// Before the gate opens: every ctts that was given out under the old protocol is below the floor.
// Lines tell it of those who left; a dead worker's line may be behind, but one host shares one
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
Status Gate::count_switch(const GateLine& seen, uint64_t waited_us, VerbCounters& counters) {
  VerbArena arena(worker_.pool());
  auto* was = arena.allocate_array<uint64_t>(3);
  if (was == nullptr) return Status::ok_status();
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.fetch_add(gate_address().plus(offsetof(GateLine, switches)), 1, was);
  batch.fetch_add(gate_address().plus(offsetof(GateLine, switch_us_sum)), waited_us, was + 1);
  if (waited_us > seen.switch_us_max) {
    batch.compare_swap(gate_address().plus(offsetof(GateLine, switch_us_max)), seen.switch_us_max,
                       waited_us, was + 2);
  }
  return batch.execute();
}

}  // namespace rdmacc
