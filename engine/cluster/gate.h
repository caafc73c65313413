#pragma once
#include <vector>

#include "engine/api/plain_data.h"
#include "engine/cluster/line_images.h"
#include "engine/cluster/timestamp.h"
#include "engine/storage/layout/region_layout.h"
#include "rdma/rpc/worker.h"

// The protocol gate (docs/architecture.md §6: protocols must not meet on a record). A transaction
// enters at its first engine access and leaves after its last effect. Transactions of the open
// protocol share the gate; one of another protocol requests the switch, from then on no other
// enters, and when the last one inside has left (or was resolved, if its worker died) the gate
// opens for the protocol of the longest waiting worker. Every ctts given out afterwards is larger
// than all before. It is also where reclamation epochs are announced: one batch does both.
//
//   enter: WRITE own line {inside, epoch} | READ gate line   (store before load: F2)
//          open is the wanted protocol and next is none: in. Else retract the line, publish
//          waiting_for, wait.
//   wait:  WRITE own line {waiting_for} | READ gate line | READ all worker lines, then sleep.
//   switch: CAS next into the gate word; when a wait's READ shows `next` in the gate and
//          then no line inside with the open protocol: raise ctts_floor, CAS {open, next, g} ->
//          {protocol of the longest waiter, none, g + 1}. Any waiter does it, so that one which
//          gives up or dies does not stop the others.
//
//   share: while a transaction of the worker is inside, others of its protocol join it without a
//          verb: the line speaks for all of them. The last one to leave clears it.
//
//   exclusive: a transaction may ask for exclusive mode, in which it is the only one inside and
//          meets no conflict. Its line waits with kAskedExclusive; like a switch, `next` keeps
//          newcomers out until the gate has drained, and it opens for that one worker:
//          {open, next, 0, g} -> {protocol, none, worker, g + 1}, good for one transaction, which
//          enters by WRITE own line {inside} | CAS {…, worker, g + 1} -> {…, worker, g + 2}. When
//          it has left, a waiter of the protocol lets the others in again:
//          {open, none, worker, g} -> {open, none, 0, g + 1}. The mode may be refused or end early
//          (G4): nothing but the number of attempts depends on it.
//
//  G1  A line says `inside` from before the READ that lets its worker in until after the last
//      effect of all that share it; the READ of the lines comes after the READ (or CAS) that
//      showed `next`. So one of the two sees the other, and a gate seen drained under `next` stays
//      drained.
//  G2  A line's last_ctts is in place before its `inside` becomes 0, and is read after it.
//  G3  A transaction that waited for a protocol when it opened gets in before the next switch is
//      requested (bounded by kHoldOffUs, in case it sleeps), and the open protocol is not chosen
//      while another is waited for: no side starves. No transaction joins later than kShareUs after
//      the last READ that showed no `next`, so a worker that is never empty does not keep the gate
//      open. After exclusive mode all that waited for the protocol go first (the next request for
//      the mode holds off like one for another protocol), and which request is granted next is
//      decided by age.
//  G4  Exclusive mode, and a request for it, hold other transactions up for a bounded time: a gate
//      that was closed for a request, and that does not drain in kDrainUsMax, is opened again by
//      any waiter (generation g + 1, so that G1 holds for it, too), and the transaction that asked
//      goes in with the others; so it does when half its time to wait is over. The mode
//      ends when its worker is dead, does not come in for kHoldOffUs, has left, or stays for
//      kExclusiveUsMax: others of the protocol then join it. Another protocol never does.
//      Where it can be told that the worker waits for something else than the engine, kStandstillUs
//      of that end the mode, too: what it waits for may be held by one that waits here. So may a
//      gate be opened again, while one inside waits for a lock, that was closed for a request; of
//      another protocol only where some wait for the open one, and the longer the oftener it was.
//  G5  What is told while node 0 is down is lost over a wire, and a worker that rests afterwards
//  would
//      be inside for all others. So the line of one that leaves then is told again when node 0 is
//      back, unless a next transaction tells it before. One that node 0 loses in the moment of its
//      death stays: until the worker's next transaction, or its end.
//
// One Gate per worker; its coroutines share it. The wait is bounded by `deadline_us` and ends
// when *cancelled becomes true (looked at between two sleeps of at most kPollUsMax).

namespace rdmacc {

using ProtocolId = uint8_t;

// In GateWord::next and WorkerLine::waiting_for: a request for exclusive mode.
constexpr uint8_t kAskedExclusive = 0x80;

// GateLine::word, unpacked. Protocols are ProtocolId + 1, 0 = none. A drain (gate_drain.h), and
// nothing else, closes the gate with next = open.
struct GateWord {
  uint8_t open = 0;
  uint8_t next = 0;
  uint32_t generation = 0;  // wraps around
  uint16_t exclusive = 0;   // 1 + the worker in exclusive mode, 0: the whole protocol may enter

  static GateWord unpack(uint64_t word) {
    return GateWord{static_cast<uint8_t>(word >> 56), static_cast<uint8_t>(word >> 48),
                    static_cast<uint32_t>(word), static_cast<uint16_t>(word >> 32)};
  }
  uint64_t pack() const {
    return (static_cast<uint64_t>(open) << 56) | (static_cast<uint64_t>(next) << 48) |
           (static_cast<uint64_t>(exclusive) << 32) | generation;
  }
  // Closed for a request; else open, or closed by a drain.
  bool requested() const { return open != 0 && next != 0 && next != open; }
  // Closed for a request of the open protocol's exclusive mode: any waiter may open it again.
  bool revocable() const { return open != 0 && next == (open | kAskedExclusive); }
  // The same gate, open to all of its protocol.
  GateWord reopened() const { return GateWord{open, 0, generation + 1, 0}; }
};

// What a transaction holds while it is inside.
struct GateEntry {
  uint64_t epoch = 0;
  bool inside = false;
  bool exclusive = false;  // it came in in exclusive mode
};

class Gate {
 public:
  static constexpr uint64_t kPollUsMin = 20, kPollUsMax = 2'000;
  static constexpr uint64_t kHoldOffUs = 10'000;
  static constexpr uint64_t kShareUs = 100;
  static constexpr uint64_t kDrainUsMax = 250'000;
  static constexpr uint64_t kExclusiveUsMax = 5'000'000;
  static constexpr uint64_t kStandstillUs = 20'000;
  static constexpr uint64_t kStandstillLookUs = 4'000;  // from one question for it to the next

  Gate(Worker& worker, const Topology& topology, TimestampClock& clock);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // kTimeout at the deadline, kCancelled, kNoSpace or kUnavailable. On success the transaction is
  // inside; `cancelled` may be nullptr. `now_us`: a reading of the clock; 0: none was made.
  Status enter(ProtocolId protocol, uint64_t deadline_us, const bool* cancelled,
               VerbCounters& counters, GateEntry& entry, uint64_t now_us = 0);
  // Likewise, in exclusive mode if that can be had (G4); entry.exclusive tells.
  Status enter_exclusive(ProtocolId protocol, uint64_t deadline_us, const bool* cancelled,
                         VerbCounters& counters, GateEntry& entry, uint64_t now_us = 0);
  // The transaction's last verb has completed. Does not wait.
  void leave(GateEntry& entry);

  // How to tell that a worker's transaction waits outside of the engine; nullptr: it cannot be
  // told. Called by waiters, between verbs.
  void watch_standstills(StandstillOf of) { standstill_of_ = of; }

  // The caller's worker is about to begin transactions with shared locks: before enter(), which
  // tells it. From then on a death of the worker asks for a sweep (gate_drain.h).
  void will_share() { shares_ = true; }
  // The same of a transaction that is inside already and is about to take its first one. An error:
  // it was not told, and none may be taken.
  Status tell_sharing(VerbCounters& counters);
  // A transaction that is inside does not know whether a reader count includes it. Before leave().
  void lost_reader_counts() { reader_counts_lost_ = known_sweeps_ + 1; }

  // Of this worker's transactions: is there one alone inside, and how many have come in so far.
  bool has_one_inside() const { return insiders_ == 1 && users_ == 1; }
  uint64_t entries() const { return entries_; }
  // Workers with transactions inside that one of this worker has found at its last look, and which
  // keep it out for as long as they are: of another protocol. Empty when none waits for such.
  const std::vector<WorkerId>& waited_for() const { return waited_for_; }
  WorkerId worker() const { return worker_.id(); }

  // The protocol that is open now; kNoProtocol if none was ever opened.
  static constexpr ProtocolId kNoProtocol = 0xFF;
  Result<ProtocolId> open_protocol(VerbCounters& counters);
  // A copy of the gate's line and of all worker lines. `order` is that of each line's words:
  // what GateWatch concludes from two copies rests on it.
  Status snapshot(GateLine* gate, std::vector<WorkerLine>* lines, VerbCounters& counters,
                  WordOrder order = WordOrder::kAscending);

  // Clears the line of a dead, resolved worker. Done before its slot is released. What it
  // published as last_ctts stays, for the next floor; what it says of reader counts goes last. A
  // time in place of one since which it waits marks a line that was cleared (gate_watch.h).
  static Status clear_line(Worker& by, const RegionLayout& layout, WorkerId dead,
                           VerbCounters& counters);

 private:
  struct Waiter {    // on the stack of a waiting coroutine
    uint8_t wanted;  // protocol + 1
    bool exclusive;
    uint64_t since_us;
    // The gate's word as last seen, since when it has been seen, and its generation.
    uint64_t word = 0;
    uint64_t word_since_us = 0;
    uint64_t generation_since_us = 0;
    // What it waits for has stood still whenever it was asked for since then; 0: it has not.
    uint64_t still_since_us = 0;
    uint64_t still_asked_us = 0;
    uint32_t times_reopened = 0;  // times that it has opened a gate again for that
    bool looked = false;
    bool gave_up = false;  // on exclusive mode: it goes in with the others
  };
  struct View {  // of a waiter's last look
    GateLine gate;
    WorkerLine* lines;  // registered, of all workers
  };

  GlobalAddress gate_address() const { return GlobalAddress::make(0, layout_.control); }
  GlobalAddress line_address() const {
    return GlobalAddress::make(0, layout_.worker_line(worker_.id()));
  }
  bool may_enter(uint64_t word, uint8_t wanted, bool exclusive) const;
  bool may_announce(uint8_t wanted, bool exclusive) const {
    return users_ == 0 || (!exclusive && announced_ == wanted);
  }
  bool may_share(uint8_t wanted, uint64_t now_us) const;
  void share(GateEntry& entry);

  Status adopt_line(VerbCounters& counters);
  Status enter_as(Waiter& self, uint64_t deadline_us, const bool* cancelled, VerbCounters& counters,
                  GateEntry& entry);
  struct Claim {  // of exclusive mode
    uint64_t word = 0;
    bool won = false;
  };
  Status tell_and_look(const Waiter& self, Claim& claim, GateLine& seen, VerbCounters& counters);
  Status tell_and_look_in_place(GateLine& seen, VerbCounters& counters);
  Result<bool> try_enter(const Waiter& self, uint64_t posted_us, GateEntry& entry,
                         VerbCounters& counters);
  Status wait_and_enter(Waiter& self, uint64_t deadline_us, const bool* cancelled,
                        VerbCounters& counters, GateEntry& entry);
  Status look(View& view, VerbCounters& counters);
  void note(const GateLine& seen);
  void count_epoch(uint64_t epoch);
  void discount_epoch(uint64_t epoch);
  uint64_t oldest_epoch() const;
  void withdraw(uint64_t epoch);
  WorkerLine compose();
  void publish();
  void publish_in_place();
  void add_line(DoorbellBatch& batch, const WorkerLine& line);
  void begin_with_line(DoorbellBatch& batch, LineImages::OfChain& image);
  Status publish_and_wait(VerbCounters& counters);
  void tell_when_node_is_back();

  // gate_switch.cc: what a waiter does for the switch after a look. True: look again at once.
  Result<bool> advance(Waiter& self, const View& view, VerbCounters& counters);
  bool alive(WorkerId worker, const WorkerLine& line) const;
  bool drained(uint8_t open, const WorkerLine* lines) const;
  void note_waited_for(const Waiter& self, GateWord word, const WorkerLine* lines);
  bool must_hold_off(const Waiter& self, uint8_t open, const WorkerLine* lines) const;
  Result<bool> request(const Waiter& self, GateWord word, VerbCounters& counters);
  struct Choice {
    GateWord word;
    uint64_t since_us = UINT64_MAX;  // when the one that it is for began to wait
  };
  Choice choose_next(const Waiter& self, const View& view) const;
  Result<bool> open_next(const Waiter& self, const View& view, VerbCounters& counters);
  Result<bool> raise_floor(const View& view, VerbCounters& counters);
  Status count_opening(const GateLine& seen, const Choice& choice, VerbCounters& counters);

  // gate_exclusive.cc: exclusive mode.
  bool note_look(Waiter& self, uint64_t word, uint64_t deadline_us) const;
  bool exclusive_lasts(Waiter& self, GateWord word, const WorkerLine* lines) const;
  bool overdue(Waiter& self, GateWord word, const WorkerLine* lines) const;
  Result<bool> replace(GateWord from, GateWord by, VerbCounters& counters);

  // gate_standstill.cc
  bool asks_for_standstill(Waiter& self) const;
  bool stood_still(Waiter& self, bool stands) const;
  bool insiders_stand_still(Waiter& self, GateWord word, const WorkerLine* lines) const;

  Worker& worker_;
  const RegionLayout layout_;
  const WorkerId workers_max_;
  TimestampClock& clock_;

  StandstillOf standstill_of_ = nullptr;
  LineImages images_;
  LineImages::Image* reserve_ = nullptr;  // for a leave() when no other image can be had
  bool telling_again_ = false;            // a coroutine does
  bool adopted_ = false;                  // the line's former content was looked at
  uint64_t word_ = 0;                     // of the gate, as last seen
  uint64_t known_epoch_ = 1;              // likewise; older is safe, 0 would mean none
  uint64_t known_sweeps_ = 0;             // likewise; exact while any is inside
  bool shares_ = false;
  bool told_shares_ = false;  // the line says so
  uint64_t reader_counts_lost_ = 0;

  struct EpochUsers {
    uint64_t epoch;
    uint32_t users;
  };
  uint32_t users_ = 0;                 // coroutines that are inside or trying
  uint32_t insiders_ = 0;              // those that are inside
  uint64_t entries_ = 0;               // that there have been
  uint8_t announced_ = 0;              // their protocol + 1
  uint32_t exclusive_generation_ = 0;  // generation of the last exclusive mode that was used
  bool exclusive_used_ = false;        // there was one
  uint64_t shown_open_us_ = 0;         // when the READ that let the latest one in was posted
  std::vector<EpochUsers> epochs_;     // of the users, in no order; few differ
  uint64_t published_epoch_ = 0;
  std::vector<const Waiter*> waiters_;  // oldest first
  std::vector<WorkerId> waited_for_;
};

}  // namespace rdmacc
