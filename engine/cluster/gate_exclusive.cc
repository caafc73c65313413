// Exclusive gate mode; the rules are in gate.h.
#include "engine/cluster/gate.h"

namespace rdmacc {

// What a poll tells a waiter about the time that things take. True: the gate has been opened since
// the poll before. A waiter that wants exclusive mode gives that up when another has opened, for
// all, the gate that it had closed, or when half its time is over.
bool Gate::note_look(Waiter& self, uint64_t word, uint64_t deadline_us) const {
  const uint64_t now_us = worker_.endpoint().now_us();
  const GateWord before = GateWord::unpack(self.word), now = GateWord::unpack(word);
  const bool opened = !self.looked || before.generation != now.generation;
  if (opened) self.generation_since_us = now_us;
  if (opened || self.word != word) {
    self.word_since_us = now_us;
    self.still_since_us = 0;
  }
  if (self.exclusive) {
    const bool taken_back = self.looked && opened && before.revocable() &&
                            now.open == before.open && now.next == 0 && now.exclusive == 0;
    const uint64_t half_us = deadline_us > self.since_us ? (deadline_us - self.since_us) / 2 : 0;
    self.gave_up = taken_back || now_us - self.since_us >= half_us;
    self.exclusive = !self.gave_up;
  }
  self.word = word;
  self.looked = true;
  return opened;
}

// The gate is one worker's: until it has come and gone, within the bounds of G4. For another
// protocol's sake it need not end: that one waits until it drains, as for any transaction inside.
bool Gate::exclusive_lasts(Waiter& self, GateWord word, const WorkerLine* lines) const {
  const auto holder = static_cast<WorkerId>(word.exclusive - 1);
  if (holder >= workers_max_) return false;
  const WorkerLine& line = lines[holder];
  if (!alive(holder, line)) return false;
  const uint64_t seen_us = worker_.endpoint().now_us() - self.generation_since_us;
  if (line.inside == word.open) {
    if (self.wanted != word.open || seen_us >= kExclusiveUsMax) return false;
    return !asks_for_standstill(self) ||
           !stood_still(self, standstill_of_(holder) != Standstill::kNone);
  }
  const bool used =
      holder == worker_.id() && exclusive_used_ && exclusive_generation_ == word.generation;
  return !used && line.waiting_for == (word.open | kAskedExclusive) && seen_us < kHoldOffUs;
}

// May the gate be opened again for its protocol, before it has drained? A client's pauses are part
// of most transactions; a lock may be one of those that wait here.
bool Gate::overdue(Waiter& self, GateWord word, const WorkerLine* lines) const {
  if (!word.requested()) return false;
  if (asks_for_standstill(self) && insiders_stand_still(self, word, lines)) {
    ++self.times_reopened;
    return true;
  }
  const uint64_t seen_us = worker_.endpoint().now_us() - self.word_since_us;
  return word.revocable() && (self.gave_up || seen_us >= kDrainUsMax);
}

Result<bool> Gate::replace(GateWord from, GateWord by, VerbCounters& counters) {
  VerbArena arena(worker_.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  if (seen == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.compare_swap(gate_address(), from.pack(), by.pack(), seen);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  return *seen == from.pack();
}

}  // namespace rdmacc
