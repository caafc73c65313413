#pragma once
#include <span>

#include "engine/cluster/gate.h"

namespace rdmacc {

// Closes the protocol gate, for node 0, while reader counts are swept: a reader count names no
// transaction, so that what dead workers have left in it is known only while no live transaction
// has a shared lock (docs/protocols.md §3.1).
//
//   close: enter the gate for the protocol that is open (no waiter can switch it then), CAS next :=
//          open (from here on no other enters), wait until no other worker is inside
//   open:  count the sweep, CAS {open, open, g} -> {open, none, g + 1}, leave
//
//  D1  A worker is inside from before the READ that lets it in (G1), so one that is inside when the
//      sweep is counted does not exist, and one that comes in later reads the new count. What a
//      line says of reader counts therefore tells exactly which sweep has dealt with them.
//  D2  When another protocol, or exclusive mode, has been asked for already, the gate is closed to
//      newcomers anyway, but may be opened again (G4). So it is closed in node 0's own name in any
//      case: what was asked for is asked for again when node 0 has opened it.
//  D3  A node 0 that dies in the middle stays inside by its line, and so the gate stays closed,
//      until its successor has made sure that nothing of the sweep is under way any more and
//      clears the line. Then the next to try to enter finds the gate drained, and opens it.
//  D4  When the gate is closed already and a dead worker's line is inside, no worker can switch,
//      and this one may not get in: the line holds the gate in its place. A gate in exclusive mode
//      is entered like any other: when its worker has left, stays long or is dead, it is opened for
//      its whole protocol first (G4).
//  D5  A new gate has no protocol that a drain could enter it for: it takes any, and opens the gate
//      for none again, {open, open, g} -> {none, none, g + 1}. Else sessions that leave the choice
//      to the cluster would follow one that no transaction has asked for.
//
// One per worker 0, used by coroutines of it one at a time.
class GateDrain {
 public:
  GateDrain(Worker& worker, const Topology& topology);
  GateDrain(const GateDrain&) = delete;
  GateDrain& operator=(const GateDrain&) = delete;

  // The gate and all lines as they were read, valid until the next call of a member.
  struct View {
    const GateLine& gate;
    std::span<const WorkerLine> lines;
  };
  Result<View> look();

  // After ok only this worker is inside, and no other gets in before open(). Those in `ended`
  // do not count: they are dead and fenced, so that nothing of theirs takes effect any more
  // (engine/log/resolve.h). kTimeout when a transaction stays inside for `us_max`, kUnavailable
  // when one is inside whose worker has died and is not resolved; then the gate is open again.
  // kNotFound: no protocol was ever opened. `new_gate`: no transaction has met a table yet, so it
  // need not be open, and open() leaves it to the next transaction which protocol that is.
  Status close(std::span<const WorkerId> ended, uint64_t us_max, bool new_gate = false);
  // After close(); counts a completed sweep when it was one. kUnavailable or another error: it was
  // not counted.
  Status open(bool swept);

  // The worker's line is still inside, as its owner before has left it.
  Result<bool> was_abandoned();
  Status clear_abandoned();

 private:
  Status prepare();
  Status read_all();
  bool held_by(std::span<const WorkerId> ended) const;
  Status close_to_newcomers();
  Status wait_until_empty(std::span<const WorkerId> ended, uint64_t deadline_us);

  GlobalAddress gate_address() const { return GlobalAddress::make(0, layout_.control); }

  Worker& worker_;
  const RegionLayout layout_;
  const WorkerId workers_max_;
  TimestampClock clock_;
  Gate gate_;
  GateEntry gate_entry_;
  uint64_t closed_word_ = 0;       // what this drain left in the gate; 0: nothing
  bool held_by_dead_ = false;      // D4
  bool forgets_protocol_ = false;  // D5
  // Registered, for as long as the endpoint lives: opening the gate must not fail for memory.
  GateLine* seen_gate_ = nullptr;
  WorkerLine* seen_lines_ = nullptr;
  uint64_t* seen_word_ = nullptr;
};

}  // namespace rdmacc
