#include "engine/cluster/gate_drain.h"

#include <algorithm>

namespace rdmacc {
namespace {

// Waiters ask for other protocols meanwhile, or take that back.
constexpr int kCloseAttempts = 16;
// To come in itself it waits as others do: until a worker that was granted exclusive mode, and does
// not come, may be passed over. This holds nothing up.
constexpr uint64_t kEnterUsMin = 2 * Gate::kHoldOffUs;

}  // namespace

GateDrain::GateDrain(Worker& worker, const Topology& topology)
    : worker_(worker),
      layout_(topology),
      workers_max_(topology.workers_max),
      clock_(worker.endpoint()),
      gate_(worker, topology, clock_) {}

Status GateDrain::prepare() {
  if (seen_gate_ != nullptr) return Status::ok_status();
  const size_t lines_bytes = workers_max_ * sizeof(WorkerLine);
  const Result<std::byte*> memory =
      worker_.endpoint().allocate_registered(sizeof(GateLine) + lines_bytes + 64);
  if (!memory.ok()) return memory.status();
  seen_gate_ = reinterpret_cast<GateLine*>(memory.value());
  seen_lines_ = reinterpret_cast<WorkerLine*>(memory.value() + sizeof(GateLine));
  seen_word_ = reinterpret_cast<uint64_t*>(memory.value() + sizeof(GateLine) + lines_bytes);
  return Status::ok_status();
}

// The gate before the lines: a reader count that a line says was lost is judged by a count that is
// not younger.
Status GateDrain::read_all() {
  RDMACC_RETURN_IF_ERROR(prepare());
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  CHECK(seen_lines_ != nullptr && seen_word_ != nullptr);
  batch.read(gate_address(), seen_gate_, sizeof(GateLine), WordOrder::kAscending);
  batch.read(GlobalAddress::make(0, layout_.worker_line(0)), seen_lines_,
             workers_max_ * sizeof(WorkerLine), WordOrder::kAscending);
  return batch.execute();
}

Result<GateDrain::View> GateDrain::look() {
  RDMACC_RETURN_IF_ERROR(read_all());
  return View{*seen_gate_, {seen_lines_, workers_max_}};
}

Status GateDrain::close(std::span<const WorkerId> ended, uint64_t us_max, bool new_gate) {
  CHECK(!gate_entry_.inside);
  const auto after = [this](uint64_t us) { return worker_.endpoint().now_us() + us; };
  RDMACC_RETURN_IF_ERROR(read_all());
  const GateWord word = GateWord::unpack(seen_gate_->word);
  if (word.open == 0 && !new_gate) {
    return Status(Code::kNotFound, "no protocol was ever opened");
  }
  if (word.next != 0 && held_by(ended)) {
    held_by_dead_ = true;
    Status status = close_to_newcomers();
    if (status.ok()) status = wait_until_empty(ended, after(us_max));
    if (!status.ok()) static_cast<void>(open(/*swept=*/false));
    return status;
  }
  const auto open_one = static_cast<ProtocolId>(word.open == 0 ? 0 : word.open - 1);
  RDMACC_RETURN_IF_ERROR(gate_.enter(open_one, after(std::max(us_max, kEnterUsMin)), nullptr,
                                     worker_.counters(), gate_entry_));
  Status status = close_to_newcomers();
  if (status.ok()) status = wait_until_empty(ended, after(us_max));
  // Of a gate with a transaction inside the protocol stays.
  forgets_protocol_ = new_gate && status.ok();
  // A gate that cannot be opened is by others, as soon as it has drained.
  if (!status.ok()) static_cast<void>(open(/*swept=*/false));
  return status;
}

// Closed already, for a waiter of another protocol or by a node 0 that died draining it, and
// a dead worker's line prevents any switch: this worker could not enter, and need not.
bool GateDrain::held_by(std::span<const WorkerId> ended) const {
  const uint8_t open = GateWord::unpack(seen_gate_->word).open;
  return std::any_of(ended.begin(), ended.end(),
                     [&](WorkerId worker) { return seen_lines_[worker].inside == open; });
}

Status GateDrain::close_to_newcomers() {
  RDMACC_RETURN_IF_ERROR(read_all());
  uint64_t expected = seen_gate_->word;
  for (int attempt = 0; attempt < kCloseAttempts; ++attempt) {
    GateWord word = GateWord::unpack(expected);
    if (word.open != 0 && word.next == word.open) return Status::ok_status();  // D3
    word.next = word.open;                                                     // D2
    DoorbellBatch batch(worker_.scheduler(), worker_.counters());
    batch.compare_swap(gate_address(), expected, word.pack(), seen_word_);
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if (*seen_word_ == expected) {
      closed_word_ = word.pack();
      return Status::ok_status();
    }
    expected = *seen_word_;
  }
  return Status(Code::kTimeout, "the protocol gate does not close");
}

Status GateDrain::wait_until_empty(std::span<const WorkerId> ended, uint64_t deadline_us) {
  uint64_t pause_us = Gate::kPollUsMin;
  while (true) {
    RDMACC_RETURN_IF_ERROR(read_all());
    const uint8_t open = GateWord::unpack(seen_gate_->word).open;
    bool empty = true;
    for (WorkerId worker = 0; worker < workers_max_; ++worker) {
      const WorkerLine& line = seen_lines_[worker];
      if (line.inside != open || worker == worker_.id()) continue;
      if (std::find(ended.begin(), ended.end(), worker) != ended.end()) continue;
      const uint32_t alive = worker_.endpoint().incarnation_of(worker);
      if (alive == 0 || alive != static_cast<uint32_t>(line.incarnation)) {
        return Status(Code::kUnavailable, "a dead worker is inside the protocol gate");
      }
      empty = false;
    }
    if (empty) return Status::ok_status();
    if (worker_.endpoint().now_us() >= deadline_us) {
      return Status(Code::kTimeout, "a transaction stays inside the protocol gate");
    }
    worker_.scheduler().sleep_for(pause_us);
    pause_us = std::min(2 * pause_us, Gate::kPollUsMax);
  }
}

Status GateDrain::open(bool swept) {
  CHECK(gate_entry_.inside || held_by_dead_);
  Status status;
  if (held_by_dead_) {
    // Nothing but a drain closes the gate for the protocol that it has open.
    const GateWord word = GateWord::unpack(seen_gate_->word);
    if (word.next == word.open) closed_word_ = seen_gate_->word;
  }
  if (swept) {
    // Before any transaction can get in (D1).
    DoorbellBatch batch(worker_.scheduler(), worker_.counters());
    batch.fetch_add(gate_address().plus(offsetof(GateLine, sweeps)), 1, seen_word_);
    status = batch.execute();
  }
  if (closed_word_ != 0) {
    GateWord word = GateWord::unpack(closed_word_).reopened();
    if (forgets_protocol_) word.open = 0;  // D5
    DoorbellBatch batch(worker_.scheduler(), worker_.counters());
    batch.compare_swap(gate_address(), closed_word_, word.pack(), seen_word_);
    const Status opened = batch.execute();
    if (status.ok()) status = opened;
    closed_word_ = 0;
  }
  if (!held_by_dead_) gate_.leave(gate_entry_);
  held_by_dead_ = forgets_protocol_ = false;
  return status;
}

Result<bool> GateDrain::was_abandoned() {
  CHECK(!gate_entry_.inside);
  RDMACC_RETURN_IF_ERROR(read_all());
  return seen_lines_[worker_.id()].inside != 0;
}

Status GateDrain::clear_abandoned() {
  return Gate::clear_line(worker_, layout_, worker_.id(), worker_.counters());
}

}  // namespace rdmacc
