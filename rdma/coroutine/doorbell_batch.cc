#include "rdma/coroutine/doorbell_batch.h"

#include <algorithm>
#include <utility>

namespace rdmacc {

void DoorbellBatch::add(NodeId node, const Verb& verb) {
  // The one before, not this one: a round of one verb waits no more often than any other.
  if (port_ == Endpoint::Port::kOneByOne && !verbs_.empty() && scheduler_.in_coroutine()) {
    const NodeId before = nodes_.back();
    if (!wait_alone()) broken_ |= bit_of(before);
  }
  // As in a chain that has broken: what follows is not carried out either.
  if ((broken_ & bit_of(node)) != 0) return;
  if (verbs_.empty()) node_min_ = node_max_ = node;
  node_min_ = std::min(node_min_, node);
  node_max_ = std::max(node_max_, node);
  verbs_.push_back(verb);
  nodes_.push_back(node);
}

void DoorbellBatch::read_any(GlobalAddress from, void* local, size_t bytes, WordOrder order) {
  read_inline(from, local, bytes, order);
}

void DoorbellBatch::write_any(GlobalAddress to, const void* local, size_t bytes) {
  write_inline(to, local, bytes);
}

void DoorbellBatch::post_read(GlobalAddress from, void* local, size_t bytes, WordOrder order) {
  CHECK(bytes > 0 && bytes % 8 == 0 && bytes <= UINT32_MAX && from.offset() % 8 == 0);
  add(from.node(), Verb{.opcode = Opcode::kRead,
                        .order = order,
                        .bytes = static_cast<uint32_t>(bytes),
                        .remote_offset = from.offset(),
                        .local = local});
}

void DoorbellBatch::post_write(GlobalAddress to, const void* local, size_t bytes) {
  CHECK(bytes > 0 && bytes % 8 == 0 && bytes <= UINT32_MAX && to.offset() % 8 == 0);
  // A WRITE only reads its local buffer; Verb has one pointer for both directions.
  add(to.node(), Verb{.opcode = Opcode::kWrite,
                      .bytes = static_cast<uint32_t>(bytes),
                      .remote_offset = to.offset(),
                      .local = const_cast<void*>(local)});
}

void DoorbellBatch::post_compare_swap(GlobalAddress at, uint64_t expected, uint64_t desired,
                                      uint64_t* seen) {
  CHECK(at.offset() % 8 == 0 && seen != nullptr);
  add(at.node(), Verb{.opcode = Opcode::kCompareSwap,
                      .bytes = 8,
                      .remote_offset = at.offset(),
                      .local = seen,
                      .compare = expected,
                      .operand = desired});
}

void DoorbellBatch::post_fetch_add(GlobalAddress at, uint64_t addend, uint64_t* seen) {
  CHECK(at.offset() % 8 == 0 && seen != nullptr);
  add(at.node(), Verb{.opcode = Opcode::kFetchAdd,
                      .bytes = 8,
                      .remote_offset = at.offset(),
                      .local = seen,
                      .operand = addend});
}

Status DoorbellBatch::unreachable() {
  return Status(Code::kUnavailable, "a node did not carry out its verbs");
}

Status DoorbellBatch::execute_posted() {
  bool failed = std::exchange(broken_, 0) != 0;
  const VerbSavings& savings = scheduler_.savings();
  if (!savings.doorbell_batches || !savings.outstanding_requests) {
    failed = !execute_in_parts() || failed;
  } else if (!verbs_.empty()) {
    CHECK(scheduler_.in_coroutine());
    Completion completion;
    ring(&completion);
    ++counters_.round_trips;
    scheduler_.await(completion);
    failed = failed || completion.failed;
  }
  return failed ? unreachable() : Status();
}

// Each part is waited for before the next is posted: a verb, or all of a node's. What follows on a
// broken part of its node is not carried out, as in a chain.
bool DoorbellBatch::execute_in_parts() {
  Verbs<Verb> verbs;
  Verbs<NodeId> nodes;
  verbs.swap(verbs_);
  nodes.swap(nodes_);
  const bool by_node = scheduler_.savings().doorbell_batches;
  boost::container::small_vector<NodeId, 8> done, broken;
  const auto has = [](const auto& list, NodeId node) {
    return std::find(list.begin(), list.end(), node) != list.end();
  };
  Verbs<Verb> chain;
  for (size_t i = 0; i < verbs.size(); ++i) {
    const NodeId node = nodes[i];
    if (has(broken, node) || (by_node && has(done, node))) continue;
    chain.clear();
    for (size_t j = i; j < (by_node ? verbs.size() : i + 1); ++j) {
      if (nodes[j] == node) chain.push_back(verbs[j]);
    }
    done.push_back(node);
    Completion completion;
    ++completion.outstanding;
    ++counters_.doorbells;
    ++counters_.round_trips;
    scheduler_.endpoint().ring(node, {chain.data(), chain.size()}, &completion);
    scheduler_.await(completion);
    if (completion.failed) broken.push_back(node);
  }
  return broken.empty();
}

bool DoorbellBatch::wait_alone() {
  CHECK(!verbs_.empty());
  Completion completion;
  ring(&completion);
  scheduler_.await_alone(completion);
  return !completion.failed;
}

Status DoorbellBatch::execute_alone() { return wait_alone() ? Status() : unreachable(); }

void DoorbellBatch::ring_unacknowledged() {
  if (!verbs_.empty()) ring(nullptr);
  touched_ = broken_ = 0;
  failed_ = false;
}

void DoorbellBatch::ring(Completion* completion) {
  if (node_min_ == node_max_) {
    if (completion != nullptr) ++completion->outstanding;
    ++counters_.doorbells;
    scheduler_.endpoint().ring(node_min_, {verbs_.data(), verbs_.size()}, completion);
  } else {
    ring_by_node(completion);
  }
  verbs_.clear();
  nodes_.clear();
}

void DoorbellBatch::ring_by_node(Completion* completion) {
  const auto involved = [this](NodeId node) {
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  };
  // Counted before the first doorbell rings: a chain to a missing node may fail at once.
  for (uint32_t node = node_min_; completion != nullptr && node <= node_max_; ++node) {
    completion->outstanding += involved(static_cast<NodeId>(node)) ? 1 : 0;
  }
  Verbs<Verb> chain;
  for (uint32_t node = node_min_; node <= node_max_; ++node) {
    chain.clear();
    for (size_t i = 0; i < verbs_.size(); ++i) {
      if (nodes_[i] == node) chain.push_back(verbs_[i]);
    }
    if (chain.empty()) continue;
    ++counters_.doorbells;
    scheduler_.endpoint().ring(static_cast<NodeId>(node), {chain.data(), chain.size()}, completion);
  }
}

}  // namespace rdmacc
