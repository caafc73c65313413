#pragma once
#include "engine/cluster/timestamp.h"
#include "engine/storage/control_area.h"
#include "rdma/worker.h"

// The protocol gate (ARCHITECTURE: protocols must not meet on a record). A transaction enters at
// its first engine access and leaves after its last effect. Transactions of the open protocol
// share the gate; one of another protocol requests the switch, from then on nobody new enters,
// and when the last one inside has left (or was resolved, if its worker died) the gate opens for
// the protocol of the longest waiting worker. Every ctts given out afterwards is larger than all
// before. It is also where reclamation epochs are announced: one batch does both.
//
//   enter: WRITE own line {inside, epoch} | READ gate line   (store before load: F2)
//          open is ours and next is none, or other coroutines of this worker hold it inside and
//          next is none: in. Else retract the line, publish waiting_for, wait, look again.
//   switch: CAS next into the gate word; READ all worker lines until none is inside with the
//          open protocol; CAS {open, next, g} -> {next, none, g + 1}, after raising ctts_floor.
//
// One Gate per worker; its coroutines share it. The wait is bounded by `deadline_us` and ends
// at once when *cancelled becomes true.

namespace rdmacc {

using ProtocolId = uint8_t;

class Gate {
 public:
  Gate(Worker& worker, const Topology& topology, TimestampClock& clock);

  // kTimeout at the deadline, kCancelled, or kUnavailable. On success the transaction is inside.
  Status enter(ProtocolId protocol, uint64_t deadline_us, const bool* cancelled,
               VerbCounters& counters);
  // The transaction's last verb has completed. Does not wait.
  void leave();

  // The protocol that is open now; kNoProtocol if none was ever opened.
  static constexpr ProtocolId kNoProtocol = 0xFF;
  Result<ProtocolId> open_protocol(VerbCounters& counters);
  // A copy of the gate's line and of all worker lines, for views and tests.
  Status snapshot(GateLine* gate, std::vector<WorkerLine>* lines, VerbCounters& counters);

  // Formats the control area of node 0 (by its owner, on a fresh region).
  static void format(std::byte* region, const RegionLayout& layout);
  // Clears the line of a dead, resolved worker. Done before its slot is released.
  static Status clear_line(Worker& by, const RegionLayout& layout, WorkerId dead,
                           VerbCounters& counters);

 private:
  Worker& worker_;
  const RegionLayout layout_;
  TimestampClock& clock_;
  WorkerLine* line_;        // registered image of the own line
  GateLine* gate_;          // registered image of the gate
  uint32_t inside_count_ = 0;
  ProtocolId inside_protocol_ = kNoProtocol;
};

}  // namespace rdmacc
