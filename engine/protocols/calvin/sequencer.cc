#include "engine/protocols/calvin/sequencer.h"

#include <algorithm>

namespace rdmacc {
namespace {

constexpr uint64_t kPauseUsMax = 50;
// A sequencer that has just been busy looks at its area for so long before it sleeps, so that
// one-sided batches need no message.
constexpr uint64_t kLingerUs = 300;
constexpr uint64_t kNudgeUsMin = 200, kNudgeUsMax = 20'000;
// How long a coordinator's request may wait for a node that is down.
constexpr uint64_t kStuckUsMax = 60'000'000;

}  // namespace

Sequencer::Sequencer(Worker& worker, const Topology& topology, StorageService& storage,
                     CallerFence& fence, SequencerOptions options)
    : worker_(worker),
      topology_(topology),
      storage_(storage),
      fence_(fence),
      region_(worker.endpoint().local_region(), topology.region_bytes,
              static_cast<NodeId>(worker.id() / topology.threads_per_node)),
      area_(RegionLayout(topology), region_),
      link_(worker, topology, area_),
      executor_(link_, options.procedures, std::move(options.observer),
                [this](const std::function<bool()>& arrived) { wait_for(arrived); }),
      refuse_(std::move(options.refuse)),
      whole_(topology.nodes) {}

void Sequencer::wait_for(const std::function<bool()>& arrived) {
  CHECK(arrived != nullptr);
  const uint64_t since_us = now_us();
  for (uint64_t pause_us = 1; !arrived(); pause_us = std::min(pause_us + 1, kPauseUsMax)) {
    if (now_us() - since_us > kStuckUsMax) give_up_waiting();
    worker_.scheduler().sleep_for(pause_us);
  }
}

// A node is away for long. The order waits for it, the coordinators need not: what is sealed will
// be executed or was, what is not sealed is dropped.
void Sequencer::give_up_waiting() {
  for (auto* queue : {&in_batch_, &pending_}) {
    for (const std::shared_ptr<Pending>& each : *queue) {
      if (each->executed.outstanding == 0) continue;
      each->status = queue == &pending_
                         ? aborted(AbortReason::kNodeRestarted)
                         : Status(Code::kUnavailable, "a node is away: the order does not go on");
      each->executed.finish_one();
    }
  }
  pending_.clear();
}

// What a node sent counts when it is whole.
bool Sequencer::batch_from(NodeId node, uint64_t epoch) const {
  const uint64_t place = area_.layout().order_batch(node, epoch);
  if (!area_.holds(place, epoch)) return false;
  if (whole_[node] == epoch) return true;
  OrderArea::Block block;
  if (!area_.load(place, epoch, kBatchBytes, block)) return false;
  whole_[node] = epoch;
  return true;
}

bool Sequencer::sealed(uint64_t epoch) const { return batch_from(link_.node, epoch); }

bool Sequencer::may_begin(uint64_t epoch) const {
  if (sealed(epoch)) return true;
  if (pauses_ > 0) return false;
  for (NodeId node = 0; node < topology_.nodes; node++) {
    if (batch_from(node, epoch)) return true;
  }
  return !pending_.empty();
}

bool Sequencer::all_batches(uint64_t epoch) const {
  for (NodeId node = 0; node < topology_.nodes; node++) {
    if (!batch_from(node, epoch)) return false;
  }
  return true;
}

Sequencer::Batch Sequencer::load_batch(NodeId node, uint64_t epoch) const {
  OrderArea::Block block;
  Batch batch;
  CHECK(area_.load(area_.layout().order_batch(node, epoch), epoch, kBatchBytes, block));
  batch.word = block.word;
  // All nodes have the same bytes: one that does not parse is empty for all.
  if (!decode_batch(block.bytes, batch.requests)) batch.requests.clear();
  return batch;
}

void Sequencer::wake() {
  if (running_ || !recovered_) return;
  running_ = worker_.scheduler().spawn([this] { run(); });
}

void Sequencer::run() {
  CHECK(running_ && recovered_);
  uint64_t busy_us = 0;  // when the last epoch ended
  while (true) {
    const uint64_t epoch = area_.progress().epoch;
    for (uint64_t pause_us = 1; !may_begin(epoch); pause_us = std::min(pause_us + 1, kPauseUsMax)) {
      if (pauses_ == 0 && now_us() > busy_us + kLingerUs) {
        running_ = false;
        return;
      }
      worker_.scheduler().sleep_for(pause_us);
    }
    if (!sealed(epoch)) seal(epoch);
    broadcast(epoch, now_us() > busy_us + kLingerUs / 2);
    execute(epoch);
    busy_us = now_us();
  }
}

// O1 .. O3 of order.h.
uint64_t Sequencer::time_of_batch() const {
  uint64_t us = std::max({now_us(), area_.end_us(), storage_.last_split_us()});
  for (const std::shared_ptr<Pending>& each : in_batch_) {
    us = std::max(us, each->request.ctts >> 16);
  }
  return us + 1;
}

// An empty batch goes the way of the one that it answers.
StagePlan Sequencer::plan_of_batch(uint64_t epoch) const {
  if (!in_batch_.empty()) return in_batch_.front()->request.plan;
  for (NodeId node = 0; node < topology_.nodes; node++) {
    if (node == link_.node || !batch_from(node, epoch)) continue;
    return plan_in_batch_of(node, epoch);
  }
  return StagePlan();
}

StagePlan Sequencer::plan_in_batch_of(NodeId node, uint64_t epoch) const {
  const uint64_t word = area_.word_of(area_.layout().order_batch(node, epoch));
  return StagePlan(static_cast<uint16_t>(word & kStageCodeMax));
}

void Sequencer::seal(uint64_t epoch) {
  CHECK(!sealed(epoch));
  CHECK(in_batch_.empty());
  std::vector<const RequestBytes*> requests;
  uint64_t bytes = OrderArea::kBlockHeaderBytes + 64;
  while (!pending_.empty() && requests.size() < kBatchRequestsMax) {
    bytes += pending_.front()->bytes.size();
    if (bytes > kBatchBytes) break;
    in_batch_.push_back(std::move(pending_.front()));
    pending_.pop_front();
    requests.push_back(&in_batch_.back()->bytes);
  }
  CHECK(pending_.empty() || !requests.empty());  // one always fits
  std::vector<std::byte> batch;
  encode_batch(requests, batch);
  const uint64_t word = (time_of_batch() << 16) | plan_of_batch(epoch).code();
  area_.store(area_.layout().order_batch(link_.node, epoch),
              OrderArea::make_block(epoch, word, batch));
}

// Until all batches of the epoch are here.
void Sequencer::broadcast(uint64_t epoch, bool after_sleep) {
  carry_out_broadcast(link_, plan_in_batch_of(link_.node, epoch), epoch);
  uint64_t pause_us = after_sleep ? 0 : kNudgeUsMin;
  uint64_t nudge_at_us = now_us() + pause_us;
  wait_for([&] {
    if (all_batches(epoch)) return true;
    if (now_us() < nudge_at_us) return false;
    nudge(epoch);
    pause_us = std::clamp(2 * pause_us, kNudgeUsMin, kNudgeUsMax);
    nudge_at_us = now_us() + pause_us;
    return all_batches(epoch);
  });
}

// A node that sleeps does not see what is written into its memory.
void Sequencer::nudge(uint64_t epoch) {
  std::vector<Rpc::Call> calls;
  for (NodeId node = 0; node < topology_.nodes; node++) {
    if (batch_from(node, epoch)) continue;
    calls.emplace_back();
    calls.back().to = topology_.worker_of(node);
    calls.back().method = kMethodOrderNudge;
  }
  if (!calls.empty()) worker_.rpc().call_all(calls, worker_.counters());
}

void Sequencer::execute(uint64_t epoch) {
  std::vector<Batch> batches;
  uint64_t base_us = 0;
  for (NodeId node = 0; node < topology_.nodes; node++) {
    batches.push_back(load_batch(node, epoch));
    base_us = std::max(base_us, batches.back().word >> 16);
  }
  std::vector<OrderedAt> requests;
  for (NodeId home = 0; home < topology_.nodes; home++) {
    for (const OrderedRequest& request : batches[home].requests) {
      const auto index = static_cast<uint32_t>(requests.size());
      requests.push_back({Position{epoch, index}, order_stamp(base_us, index), home, &request});
    }
  }
  CHECK(requests.size() <= area_.layout().orders_per_epoch());
  const uint32_t done = area_.progress().index;
  executor_.begin(requests, done);
  for (const OrderedAt& at : requests) {
    const bool mine = at.home == link_.node;
    if (at.position.index >= done) execute_one(at);
    if (mine && !in_batch_.empty()) in_batch_.pop_front();
  }
  executor_.end();
  in_batch_.clear();
  area_.set_end_us(base_us + requests.size());
  area_.set_progress(Position{epoch + 1, 0});
}

void Sequencer::execute_one(const OrderedAt& at) {
  Status status;
  OrderedOutcome outcome;
  executor_.execute(at.position.index, status, outcome);
  area_.set_progress(Position{at.position.epoch, at.position.index + 1});
  const bool mine = at.home == link_.node;
  if (!mine && executor_.writes_here(*at.request)) tell_progress(at.home, at.request->plan);
  if (!mine || in_batch_.empty() || in_batch_.front()->executed.outstanding == 0) return;
  Pending& waiting = *in_batch_.front();
  waiting.status = std::move(status);
  waiting.outcome = std::move(outcome);
  waiting.position = at.position;
  waiting.executed.finish_one();
}

// In the background; what is told last is the newest.
void Sequencer::tell_progress(NodeId node, StagePlan plan) {
  CHECK(node != link_.node);
  const auto [at, fresh] = telling_.try_emplace(node, Telling{plan});
  at->second.plan = plan;
  at->second.again = true;
  if (!fresh) return;
  const bool spawned = worker_.scheduler().spawn([this, node] {
    Telling& telling = telling_.at(node);
    while (telling.again) {
      telling.again = false;
      carry_out_progress(link_, telling.plan, node);
    }
    telling_.erase(node);
  });
  if (!spawned) telling_.erase(node);  // the next request tells it
}

bool Sequencer::pause(uint64_t deadline_us) {
  ++pauses_;
  while (!recovered_ || sealed(area_.progress().epoch)) {
    if (now_us() >= deadline_us) {
      resume();
      return false;
    }
    worker_.scheduler().sleep_for(kPauseUsMax);
  }
  return true;
}

void Sequencer::resume() {
  CHECK(pauses_ > 0);
  --pauses_;
}

}  // namespace rdmacc
