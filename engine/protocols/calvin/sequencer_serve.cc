// What a sequencer is asked for, and what it does when its node has been started again.
#include <set>

#include "engine/protocols/calvin/sequencer.h"

namespace rdmacc {
namespace {

constexpr uint64_t kPauseUs = 20;
constexpr uint64_t kPauseUsMax = 200;
constexpr uint64_t kSettleUsMax = 60'000'000;
constexpr uint64_t kAskUs = 20'000;

Status malformed() { return Status(Code::kCorrupt, "a request of the order does not parse"); }

// Keys are written once each: a batch is executed without looking at that again.
bool well_formed(const OrderedRequest& request, WorkerId from) {
  std::set<std::pair<TableId, std::string_view>> written;
  for (const OrderedWrite& write : request.writes) {
    if (!written.emplace(write.table, write.key).second) return false;
  }
  return static_cast<WorkerId>(request.ctts) == from;
}

}  // namespace

void Sequencer::serve() {
  CHECK(!recovered_ && !running_);
  if (area_.progress().word() == 0) area_.set_progress(Position::of(kFirstPosition));
  serve_deliveries(link_, [this] { wake(); });
  worker_.rpc().handle(
      kMethodOrderSubmit,
      fence_.guard([this](WorkerId from, std::span<const std::byte> request, Rpc::Bytes& reply) {
        return submit(from, request, reply);
      }));
  worker_.rpc().handle(kMethodOrderNudge,
                       [this](WorkerId, std::span<const std::byte>, Rpc::Bytes&) {
                         wake();
                         return Status();
                       });
  worker_.rpc().handle(kMethodOrderSettle, [this](WorkerId, std::span<const std::byte>,
                                                  Rpc::Bytes&) { return settle(); });
  worker_.rpc().handle(kMethodOrderProgress,
                       [this](WorkerId, std::span<const std::byte>, Rpc::Bytes& reply) {
                         wake();
                         MessageWriter(reply).u64(area_.progress().word());
                         return Status();
                       });
  if (storage_.reopened()) {
    const uint64_t epoch = area_.progress().epoch;
    if (epoch > 1) hold_callers(epoch - 1);
    hold_callers(epoch);
    CHECK(worker_.scheduler().spawn([this] { recover(); }));
  } else {
    recovered_ = true;
  }
}

void Sequencer::recover() {
  CHECK(!recovered_);
  while (!executor_.finish_redo(storage_).ok()) worker_.scheduler().sleep_for(kPauseUsMax);
  recovered_ = true;
  for (NodeId node = 0; node < topology_.nodes; node++) {
    if (node != link_.node) tell_progress(node, StagePlan());
  }
  wake();
}

// The callers of what the earlier process had sealed may be dead: their resolution waits until
// that has been executed everywhere.
void Sequencer::hold_callers(uint64_t epoch) {
  if (!sealed(epoch)) return;
  OrderArea::Block block;
  std::vector<OrderedRequest> requests;
  if (!area_.load(area_.layout().order_batch(link_.node, epoch), epoch, kBatchBytes, block) ||
      !decode_batch(block.bytes, requests)) {
    return;
  }
  std::vector<WorkerId> callers;
  for (const OrderedRequest& request : requests) {
    callers.push_back(static_cast<WorkerId>(request.ctts));
    fence_.begin(callers.back());
  }
  CHECK(worker_.scheduler().spawn([this, callers] {
    while (!settle().ok()) worker_.scheduler().sleep_for(kPauseUsMax);
    for (const WorkerId caller : callers) fence_.end(caller);
  }));
}

// 0: it is away.
uint64_t Sequencer::ask_progress(NodeId node) {
  Rpc::Call call;
  call.to = topology_.worker_of(node);
  call.method = kMethodOrderProgress;
  if (!worker_.rpc().call_one(call, worker_.counters()).ok()) return 0;
  return MessageReader(call.reply).u64();
}

// Waits until every node has executed all that this one has sealed.
Status Sequencer::settle() {
  const uint64_t deadline_us = now_us() + kSettleUsMax;
  while (!recovered_) worker_.scheduler().sleep_for(kPauseUsMax);
  const uint64_t epoch = area_.progress().epoch;
  const uint64_t wanted = Position{sealed(epoch) ? epoch + 1 : epoch, 0}.word();
  wake();
  for (NodeId node = 0; node < topology_.nodes; node++) {
    while (ask_progress(node) < wanted) {
      if (now_us() > deadline_us) return Status(Code::kTimeout, "the order does not go on");
      worker_.scheduler().sleep_for(kPauseUsMax);
    }
  }
  return Status();
}

Status Sequencer::submit(WorkerId from, std::span<const std::byte> bytes, Rpc::Bytes& reply) {
  if (!refuse_.empty()) return Status(Code::kInvalidArgument, refuse_);
  auto pending = std::make_shared<Pending>();
  MessageReader in(bytes);
  if (bytes.size() > kOrderedBytesMax || !read_request(in, pending->request) || !in.at_end() ||
      !well_formed(pending->request, from)) {
    return malformed();
  }
  pending->bytes.assign(bytes.begin(), bytes.end());
  pending->executed.outstanding = 1;
  pending_.push_back(pending);
  wake();
  worker_.scheduler().await(pending->executed);
  if (pending->status.code() == Code::kUnavailable) return pending->status;
  // Executed here; elsewhere it may be a little later.
  const uint64_t wanted = Position{pending->position.epoch, pending->position.index + 1}.word();
  const std::vector<bool> writers = executor_.writers_of(pending->request);
  const uint64_t deadline_us = now_us() + kSettleUsMax;
  for (NodeId node = 0; node < topology_.nodes && pending->status.ok(); node++) {
    if (!writers[node] || node == link_.node) continue;
    uint64_t ask_at_us = now_us() + kAskUs;
    for (uint64_t pause_us = 1; area_.progress_of(node) < wanted; pause_us++) {
      if (now_us() > deadline_us) return Status(Code::kUnavailable, "a node does not go on");
      worker_.scheduler().sleep_for(std::min(pause_us, kPauseUs));
      if (now_us() < ask_at_us) continue;
      // A node that died while it sent its word may have left an older one than this node had.
      area_.raise_progress_of(node, ask_progress(node));
      ask_at_us = now_us() + kAskUs;
    }
  }
  MessageWriter out(reply);
  write_outcome(out, pending->status, pending->outcome);
  return Status();
}

}  // namespace rdmacc
