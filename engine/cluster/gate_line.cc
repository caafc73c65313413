// The gate's part that tells the worker's own line, and looks at the gate behind it.
#include <algorithm>
#include <optional>

#include "engine/cluster/gate.h"

namespace rdmacc {
namespace {

constexpr WorkerId kGateWorker = 0;  // of the node that has the gate
constexpr uint64_t kPollUsOfAway = 20'000;

}  // namespace

WorkerLine Gate::compose() {
  CHECK(insiders_ <= users_ && (users_ == 0 || announced_ != 0));
  published_epoch_ = oldest_epoch();
  WorkerLine line{};
  line.inside = users_ > 0 ? announced_ : 0;
  line.epoch = published_epoch_;
  line.last_ctts = clock_.last();
  line.incarnation = worker_.endpoint().incarnation();
  line.shares = shares_ ? 1 : 0;
  line.reader_counts_lost = reader_counts_lost_;
  if (!waiters_.empty()) {
    const Waiter& first = *waiters_.front();
    line.waiting_for = first.exclusive ? first.wanted | kAskedExclusive : first.wanted;
    line.waiting_since_us = first.since_us;
  }
  return line;
}

// Tells the line as it is now, without waiting. When no image can be had only a line that is
// about to say "inside: none" must be told; at most one such is in flight, since the next
// transaction's enter() waits behind it.
void Gate::publish() {
  if (worker_.scheduler().mapped() != nullptr) return publish_in_place();
  LineImages::OfChain image(images_, worker_.scheduler());
  const bool from_reserve = image.none();
  if (from_reserve) {
    if (users_ > 0) return;
    CHECK(reserve_ != nullptr);  // adopt_line() came first
    image.borrow(*reserve_);
  }
  image->line = compose();
  image.number();
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  add_line(batch, image->line);
  batch.ring_unacknowledged();
  if (!from_reserve) image.unacknowledged();
}

// The words of publish(), in their order, with nothing in flight and so without an image: what
// each transaction does at its end is a few stores.
void Gate::publish_in_place() {
  const WorkerLine line = compose();
  MappedMemory& memory = *worker_.scheduler().mapped();
  uint64_t* const at = memory.words_within(line_address());
  if (at == nullptr) return;  // then nothing was told before, either
  worker_.counters().writes += 2;
  memory.write_words(at + offsetof(WorkerLine, last_ctts) / 8, &line.last_ctts, 8);
  memory.write_words(at, &line, sizeof(line));
}

// G2
void Gate::add_line(DoorbellBatch& batch, const WorkerLine& line) {
  batch.write(line_address().plus(offsetof(WorkerLine, last_ctts)), &line.last_ctts, 8);
  batch.write(line_address(), &line, sizeof(WorkerLine));
}

Status Gate::publish_and_wait(VerbCounters& counters) {
  LineImages::OfChain image(images_, worker_.scheduler());
  if (image.none()) return out_of_registered_memory();
  image->line = compose();
  image.number();
  DoorbellBatch batch(worker_.scheduler(), counters);
  add_line(batch, image->line);
  const Status status = batch.execute();
  image.completed();
  return status;
}

Status Gate::tell_sharing(VerbCounters& counters) {
  CHECK(insiders_ > 0);
  if (told_shares_) return Status();
  shares_ = true;
  if (worker_.scheduler().mapped() != nullptr) {
    publish_in_place();
  } else {
    RDMACC_RETURN_IF_ERROR(publish_and_wait(counters));
  }
  told_shares_ = true;
  return Status();
}

// G5. In place, what is told arrives whether or not the node lives.
void Gate::tell_when_node_is_back() {
  if (telling_again_ || worker_.scheduler().mapped() != nullptr) return;
  if (worker_.endpoint().incarnation_of(kGateWorker) != 0) return;
  telling_again_ = worker_.scheduler().spawn([this] {
    uint64_t pause_us = kPollUsMin;
    for (bool told = false; !told;) {
      worker_.scheduler().sleep_for(pause_us);
      pause_us = std::min(2 * pause_us, kPollUsOfAway);
      if (users_ > 0 || !waiters_.empty()) break;
      told = worker_.endpoint().incarnation_of(kGateWorker) != 0 &&
             publish_and_wait(worker_.counters()).ok();
    }
    telling_again_ = false;
  });
}

// A chain that tells the line before it looks at anything.
void Gate::begin_with_line(DoorbellBatch& batch, LineImages::OfChain& image) {
  image->line = compose();
  image.number();
  batch.write(line_address(), &image->line, sizeof(WorkerLine));
}

// The line, then, in exclusive mode, its claim, then the gate. kUnavailable: nothing is known.
Status Gate::tell_and_look(const Waiter& self, Claim& claim, GateLine& seen,
                           VerbCounters& counters) {
  std::optional<VerbArena> arena;
  if (self.exclusive) arena.emplace(worker_.pool());
  auto* claim_seen = self.exclusive ? arena->allocate_array<uint64_t>(1) : nullptr;
  if (self.exclusive && claim_seen == nullptr) return out_of_registered_memory();
  LineImages::OfChain image(images_, worker_.scheduler());
  if (image.none()) return out_of_registered_memory();
  DoorbellBatch batch(worker_.scheduler(), counters);
  begin_with_line(batch, image);
  // Exclusive mode is claimed, so that no worker ends it that has not seen this one inside.
  if (self.exclusive) batch.compare_swap(gate_address(), self.word, claim.word, claim_seen);
  // Ascending: the floor is read after the word that it belongs to.
  batch.read(gate_address(), &image->gate, sizeof(GateLine), WordOrder::kAscending);
  const Status status = batch.execute();
  seen = image->gate;
  image.completed();
  claim.won = self.exclusive && status.ok() && *claim_seen == self.word;
  return status;
}

// The same words in the same order, with nothing in flight.
Status Gate::tell_and_look_in_place(GateLine& seen, VerbCounters& counters) {
  const WorkerLine line = compose();
  MappedMemory& memory = *worker_.scheduler().mapped();
  uint64_t* const line_at = memory.words_within(line_address());
  const uint64_t* const gate_at = memory.words_within(gate_address());
  if (line_at == nullptr || gate_at == nullptr) return DoorbellBatch::unreachable();
  ++counters.writes;
  ++counters.reads;
  ++counters.doorbells;
  ++counters.round_trips;
  worker_.scheduler().count_round();
  memory.write_words(line_at, &line, sizeof(line));
  memory.fence();
  memory.read_line(gate_at, &seen, WordOrder::kAscending);
  return Status();
}

}  // namespace rdmacc
