#include "rdma/doorbell_batch.h"

namespace rdmacc {

void VerbCounters::add(const VerbCounters& other) {
  round_trips += other.round_trips;
  doorbells += other.doorbells;
  reads += other.reads;
  writes += other.writes;
  atomics += other.atomics;
  messages += other.messages;
}

std::vector<Verb>& DoorbellBatch::chain_of(NodeId node) {
  if (node >= chains_.size()) chains_.resize(node + size_t{1});
  ++verbs_;
  return chains_[node];
}

void DoorbellBatch::read(GlobalAddress from, void* local, size_t bytes, WordOrder order) {
  CHECK(bytes > 0 && bytes % 8 == 0 && bytes <= UINT32_MAX && from.offset() % 8 == 0);
  ++counters_.reads;
  chain_of(from.node())
      .push_back(Verb{.opcode = Opcode::kRead,
                      .order = order,
                      .bytes = static_cast<uint32_t>(bytes),
                      .remote_offset = from.offset(),
                      .local = local});
}

void DoorbellBatch::write(GlobalAddress to, const void* local, size_t bytes) {
  CHECK(bytes > 0 && bytes % 8 == 0 && bytes <= UINT32_MAX && to.offset() % 8 == 0);
  ++counters_.writes;
  // A WRITE only reads its local buffer; Verb has one pointer for both directions.
  chain_of(to.node()).push_back(Verb{.opcode = Opcode::kWrite,
                                     .bytes = static_cast<uint32_t>(bytes),
                                     .remote_offset = to.offset(),
                                     .local = const_cast<void*>(local)});
}

void DoorbellBatch::compare_swap(GlobalAddress at, uint64_t expected, uint64_t desired,
                                 uint64_t* seen) {
  CHECK(at.offset() % 8 == 0 && seen != nullptr);
  ++counters_.atomics;
  chain_of(at.node()).push_back(Verb{.opcode = Opcode::kCompareSwap,
                                     .bytes = 8,
                                     .remote_offset = at.offset(),
                                     .local = seen,
                                     .compare = expected,
                                     .operand = desired});
}

void DoorbellBatch::fetch_add(GlobalAddress at, uint64_t addend, uint64_t* seen) {
  CHECK(at.offset() % 8 == 0 && seen != nullptr);
  ++counters_.atomics;
  chain_of(at.node()).push_back(Verb{.opcode = Opcode::kFetchAdd,
                                     .bytes = 8,
                                     .remote_offset = at.offset(),
                                     .local = seen,
                                     .operand = addend});
}

Status DoorbellBatch::execute() {
  if (empty()) return Status::ok_status();
  CHECK(scheduler_.in_coroutine());
  Completion completion;
  // Counted before the first doorbell rings: a chain to a missing node may fail at once.
  for (const auto& chain : chains_) completion.outstanding += chain.empty() ? 0 : 1;
  for (size_t node = 0; node < chains_.size(); ++node) {
    if (chains_[node].empty()) continue;
    ++counters_.doorbells;
    scheduler_.endpoint().ring(static_cast<NodeId>(node), chains_[node], &completion);
    chains_[node].clear();
  }
  verbs_ = 0;
  ++counters_.round_trips;
  scheduler_.await(completion);
  if (completion.failed) {
    return Status(Code::kUnavailable, "a node did not carry out its verbs");
  }
  return Status::ok_status();
}

void DoorbellBatch::ring_unacknowledged() {
  for (size_t node = 0; node < chains_.size(); ++node) {
    if (chains_[node].empty()) continue;
    ++counters_.doorbells;
    scheduler_.endpoint().ring(static_cast<NodeId>(node), chains_[node], nullptr);
    chains_[node].clear();
  }
  verbs_ = 0;
}

}  // namespace rdmacc
