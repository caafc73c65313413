#include "engine/cluster/gate.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace rdmacc {
namespace {

// The gate's word once exclusive mode, as this one grants it, is claimed.
uint64_t claimed(uint64_t word) {
  GateWord gate = GateWord::unpack(word);
  ++gate.generation;
  return gate.pack();
}

}  // namespace

Gate::Gate(Worker& worker, const Topology& topology, TimestampClock& clock)
    : worker_(worker),
      layout_(topology),
      workers_max_(topology.workers_max),
      clock_(clock),
      images_(worker.pool()) {
  CHECK(worker.id() < workers_max_);
}

bool Gate::may_enter(uint64_t word, uint8_t wanted, bool exclusive) const {
  const GateWord gate = GateWord::unpack(word);
  if (gate.open != wanted || gate.next != 0) return false;
  if (!exclusive) return gate.exclusive == 0;
  const bool used = exclusive_used_ && gate.generation == exclusive_generation_;
  return gate.exclusive == worker_.id() + 1 && !used;
}

void Gate::note(const GateLine& seen) {
  // Coroutines resume in any order: an older read must not bring an older word back.
  const uint32_t newer =
      GateWord::unpack(seen.word).generation - GateWord::unpack(word_).generation;
  if (!adopted_ || static_cast<int32_t>(newer) >= 0) word_ = seen.word;
  known_epoch_ = std::max(known_epoch_, seen.epoch);
  known_sweeps_ = std::max(known_sweeps_, seen.sweeps);
}

// The slot's former owner may have given out a ctts that the line still tells; this worker's must
// be larger, and the line must not go back. Reader counts that it lost are lost until a sweep.
Status Gate::adopt_line(VerbCounters& counters) {
  if (adopted_) return Status::ok_status();
  LineImages::Image* image = images_.take();
  if (image == nullptr) return out_of_registered_memory();
  if (reserve_ == nullptr) reserve_ = images_.take();
  if (reserve_ == nullptr) return out_of_registered_memory();
  const uint64_t chain = images_.number_chain();
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.read(line_address(), &image->line, sizeof(WorkerLine));
  batch.read(gate_address(), &image->gate, sizeof(GateLine));
  const Status status = batch.execute();
  if (status.ok()) {
    clock_.observe(image->line.last_ctts);
    reader_counts_lost_ = std::max(reader_counts_lost_, image->line.reader_counts_lost);
    note(image->gate);
    adopted_ = true;
  }
  images_.completed(image, chain);
  return status;
}

void Gate::count_epoch(uint64_t epoch) {
  for (EpochUsers& known : epochs_) {
    if (known.epoch != epoch) continue;
    ++known.users;
    return;
  }
  epochs_.push_back({epoch, 1});
}

void Gate::discount_epoch(uint64_t epoch) {
  const auto found = std::find_if(epochs_.begin(), epochs_.end(),
                                  [&](const EpochUsers& known) { return known.epoch == epoch; });
  CHECK(found != epochs_.end());
  if (--found->users > 0) return;
  *found = epochs_.back();
  epochs_.pop_back();
}

uint64_t Gate::oldest_epoch() const {
  uint64_t oldest = 0;  // no transaction is inside
  for (const EpochUsers& known : epochs_) {
    if (oldest == 0 || known.epoch < oldest) oldest = known.epoch;
  }
  return oldest;
}

void Gate::withdraw(uint64_t epoch) {
  CHECK(users_ > 0);
  --users_;
  discount_epoch(epoch);
}

// A transaction inside keeps the line saying so (G1), and the READ that let it in is recent (G3).
// The first one that takes shared locks has to tell the line, in case it dies.
bool Gate::may_share(uint8_t wanted, uint64_t now_us) const {
  return insiders_ > 0 && announced_ == wanted && may_enter(word_, wanted, false) &&
         now_us - shown_open_us_ <= kShareUs && shares_ == told_shares_;
}

// The line's epoch is not later than that of the transactions inside, nor than the one known now.
void Gate::share(GateEntry& entry) {
  CHECK(!entry.inside && adopted_);
  entry = GateEntry{known_epoch_, true};
  ++users_;
  ++insiders_;
  ++entries_;
  count_epoch(entry.epoch);
}

// False: not now; the caller tells the line again at once. `posted_us`: not later than now.
Result<bool> Gate::try_enter(const Waiter& self, uint64_t posted_us, GateEntry& entry,
                             VerbCounters& counters) {
  CHECK(may_announce(self.wanted, self.exclusive));
  announced_ = self.wanted;
  ++users_;
  const uint64_t epoch = known_epoch_;
  count_epoch(epoch);
  const bool tells_shares = shares_;
  Claim claim;
  GateLine seen;
  const bool in_place = !self.exclusive && worker_.scheduler().mapped() != nullptr;
  if (self.exclusive) claim.word = claimed(self.word);
  const Status status = in_place ? tell_and_look_in_place(seen, counters)
                                 : tell_and_look(self, claim, seen, counters);
  if (!status.ok()) {
    withdraw(epoch);
    if (status.code() == Code::kNoSpace) return status;  // nothing was told
    publish();
    if (users_ == 0) tell_when_node_is_back();
    return status;
  }
  note(seen);
  if (self.exclusive ? !claim.won : !may_enter(seen.word, self.wanted, false)) {
    withdraw(epoch);
    return false;
  }
  if (self.exclusive) {
    exclusive_generation_ = GateWord::unpack(claim.word).generation;
    exclusive_used_ = true;
  }
  clock_.observe(seen.ctts_floor);
  // The transaction has read nothing yet: every epoch seen until now is early enough for it.
  entry = GateEntry{known_epoch_, true, self.exclusive};
  if (entry.epoch != epoch) {
    discount_epoch(epoch);
    count_epoch(entry.epoch);
  }
  ++insiders_;
  ++entries_;
  told_shares_ = told_shares_ || tells_shares;
  shown_open_us_ = std::max(shown_open_us_, posted_us);
  if (oldest_epoch() != published_epoch_) publish();
  return true;
}

Status Gate::enter(ProtocolId protocol, uint64_t deadline_us, const bool* cancelled,
                   VerbCounters& counters, GateEntry& entry, uint64_t now_us) {
  CHECK(protocol < kAskedExclusive - 1);
  if (now_us == 0) now_us = worker_.endpoint().now_us();
  Waiter self{static_cast<uint8_t>(protocol + 1), false, now_us};
  return enter_as(self, deadline_us, cancelled, counters, entry);
}

Status Gate::enter_exclusive(ProtocolId protocol, uint64_t deadline_us, const bool* cancelled,
                             VerbCounters& counters, GateEntry& entry, uint64_t now_us) {
  CHECK(protocol < kAskedExclusive - 1);
  if (now_us == 0) now_us = worker_.endpoint().now_us();
  Waiter self{static_cast<uint8_t>(protocol + 1), true, now_us};
  return enter_as(self, deadline_us, cancelled, counters, entry);
}

Status Gate::enter_as(Waiter& self, uint64_t deadline_us, const bool* cancelled,
                      VerbCounters& counters, GateEntry& entry) {
  CHECK(!entry.inside);
  CHECK(worker_.scheduler().in_coroutine());
  RDMACC_RETURN_IF_ERROR(adopt_line(counters));
  if (!self.exclusive && waiters_.empty()) {
    if (may_share(self.wanted, self.since_us)) {
      share(entry);
      return Status::ok_status();
    }
    // A newcomer does not announce itself past others of its worker that wait: the line has room
    // for one protocol, and they would find it taken.
    if (may_announce(self.wanted, false) && may_enter(word_, self.wanted, false)) {
      const Result<bool> entered = try_enter(self, self.since_us, entry, counters);
      if (!entered.ok()) return entered.status();
      if (entered.value()) return Status::ok_status();
    }
  }
  waiters_.push_back(&self);
  const Status status = wait_and_enter(self, deadline_us, cancelled, counters, entry);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
  waited_for_.clear();
  publish();
  return status;
}

// The own line, then the gate, then all lines: in this order (G1).
Status Gate::look(View& view, VerbCounters& counters) {
  LineImages::OfChain image(images_, worker_.scheduler());
  if (image.none()) return out_of_registered_memory();
  DoorbellBatch batch(worker_.scheduler(), counters);
  begin_with_line(batch, image);
  batch.read(gate_address(), &image->gate, sizeof(GateLine), WordOrder::kAscending);
  batch.read(GlobalAddress::make(0, layout_.worker_line(0)), view.lines,
             workers_max_ * sizeof(WorkerLine), WordOrder::kAscending);
  const Status status = batch.execute();
  view.gate = image->gate;
  image.completed();
  if (status.ok()) note(view.gate);
  return status;
}

Status Gate::wait_and_enter(Waiter& self, uint64_t deadline_us, const bool* cancelled,
                            VerbCounters& counters, GateEntry& entry) {
  Scheduler& scheduler = worker_.scheduler();
  VerbArena arena(worker_.pool());
  View view{{}, arena.allocate_array<WorkerLine>(workers_max_)};
  if (view.lines == nullptr) return out_of_registered_memory();
  uint64_t pause_us = kPollUsMin;
  while (true) {
    if (cancelled != nullptr && *cancelled) return Status(Code::kCancelled);
    RDMACC_RETURN_IF_ERROR(look(view, counters));
    const uint64_t now_us = worker_.endpoint().now_us();
    if (note_look(self, view.gate.word, deadline_us)) pause_us = kPollUsMin;
    bool again = false;
    if (may_enter(view.gate.word, self.wanted, self.exclusive)) {
      if (may_announce(self.wanted, self.exclusive)) {
        const Result<bool> entered = try_enter(self, worker_.endpoint().now_us(), entry, counters);
        if (!entered.ok()) return entered.status();
        if (entered.value()) return Status::ok_status();
        again = true;  // the line still says `inside`: tell it anew at once
      }
    } else {
      const Result<bool> advanced = advance(self, view, counters);
      if (!advanced.ok()) return advanced.status();
      again = advanced.value();
    }
    if (now_us >= deadline_us) return Status(Code::kTimeout, "the protocol gate is closed");
    if (again) continue;
    scheduler.sleep_until(std::min(deadline_us, now_us + pause_us));
    pause_us = std::min(2 * pause_us, kPollUsMax);
  }
}

void Gate::leave(GateEntry& entry) {
  CHECK(entry.inside);
  entry.inside = false;
  CHECK(insiders_ > 0);
  --insiders_;
  withdraw(entry.epoch);
  if (users_ == 0 || oldest_epoch() != published_epoch_) publish();
  if (users_ == 0) tell_when_node_is_back();
}

Result<ProtocolId> Gate::open_protocol(VerbCounters& counters) {
  GateLine gate;
  if (worker_.scheduler().mapped() != nullptr) {  // needs no memory that is registered
    DoorbellBatch batch(worker_.scheduler(), counters);
    batch.read(gate_address(), &gate, sizeof(gate));
    RDMACC_RETURN_IF_ERROR(batch.execute());
  } else {
    RDMACC_RETURN_IF_ERROR(snapshot(&gate, nullptr, counters));
  }
  const GateWord word = GateWord::unpack(gate.word);
  return word.open == 0 ? kNoProtocol : static_cast<ProtocolId>(word.open - 1);
}

Status Gate::snapshot(GateLine* gate, std::vector<WorkerLine>* lines, VerbCounters& counters,
                      WordOrder order) {
  VerbArena arena(worker_.pool());
  const size_t count = lines != nullptr ? workers_max_ : 0;
  std::byte* image = arena.allocate(sizeof(GateLine) + count * sizeof(WorkerLine));
  if (image == nullptr) return out_of_registered_memory();
  static_assert(sizeof(GateLine) == sizeof(WorkerLine));
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.read(gate_address(), image, sizeof(GateLine) + count * sizeof(WorkerLine), order);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  if (gate != nullptr) std::memcpy(gate, image, sizeof(GateLine));
  if (lines != nullptr) {
    lines->resize(count);
    std::memcpy(lines->data(), image + sizeof(GateLine), count * sizeof(WorkerLine));
  }
  return Status::ok_status();
}

Status Gate::clear_line(Worker& by, const RegionLayout& layout, WorkerId dead,
                        VerbCounters& counters) {
  VerbArena arena(by.pool());
  auto* zero = arena.allocate_array<uint64_t>(4);
  if (zero == nullptr) return out_of_registered_memory();
  zero[0] = zero[1] = zero[2] = 0;
  zero[3] = std::max<uint64_t>(by.endpoint().now_us(), 1);
  const GlobalAddress line = GlobalAddress::make(0, layout.worker_line(dead));
  static_assert(offsetof(WorkerLine, inside) == 0 && offsetof(WorkerLine, epoch) == 8);
  static_assert(offsetof(WorkerLine, waiting_since_us) == offsetof(WorkerLine, waiting_for) + 8);
  static_assert(offsetof(WorkerLine, reader_counts_lost) == offsetof(WorkerLine, shares) + 8);
  DoorbellBatch batch(by.scheduler(), counters);
  batch.write(line.plus(offsetof(WorkerLine, waiting_for)), zero + 2, 16);
  batch.write(line, zero, 16);
  batch.write(line.plus(offsetof(WorkerLine, shares)), zero, 16);
  return batch.execute();
}

}  // namespace rdmacc
