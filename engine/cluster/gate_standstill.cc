// Those inside that wait for something else than the engine; G4 in gate.h.
#include <algorithm>

#include "engine/cluster/gate.h"

namespace rdmacc {

// Another process is asked about, for each that is inside.
bool Gate::asks_for_standstill(Waiter& self) const {
  const uint64_t now_us = worker_.endpoint().now_us();
  if (standstill_of_ == nullptr || now_us - self.still_asked_us < kStandstillLookUs) return false;
  self.still_asked_us = now_us;
  return true;
}

// For long enough; a single look may meet a moment in which it waits.
bool Gate::stood_still(Waiter& self, bool stands) const {
  const uint64_t now_us = worker_.endpoint().now_us();
  if (!stands) {
    self.still_since_us = 0;
  } else if (self.still_since_us == 0) {
    self.still_since_us = now_us;
  }
  return stands && now_us - self.still_since_us >= kStandstillUs;
}

// Whether for long enough, too: another protocol waits longer each time.
bool Gate::insiders_stand_still(Waiter& self, GateWord word, const WorkerLine* lines) const {
  bool stands = false, waited_for = word.revocable();
  for (WorkerId worker = 0; worker < workers_max_; ++worker) {
    const WorkerLine& line = lines[worker];
    waited_for = waited_for || line.waiting_for == word.open;
    stands = stands || (line.inside == word.open && standstill_of_(worker) == Standstill::kForLock);
  }
  if (!stood_still(self, stands && waited_for)) return false;
  constexpr uint32_t kLongestShift = 6;
  const uint64_t needed_us = kStandstillUs << std::min(self.times_reopened, kLongestShift);
  return word.revocable() || worker_.endpoint().now_us() - self.still_since_us >= needed_us;
}

}  // namespace rdmacc
