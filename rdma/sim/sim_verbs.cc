#include <cstring>
#include <utility>

#include "rdma/sim/sim_cluster.h"
#include "rdma/sim/sim_endpoint.h"

// Chains of one-sided verbs: each verb is an event at its target, a long one an event per cache
// line or word.

namespace rdmacc {
namespace {

constexpr uint32_t kVerbGapNsMax = 60;  // between two verbs of a chain at the target
constexpr uint32_t kLineGapNsMax = 80;  // between two lines of a torn verb
constexpr uint32_t kWordGapNsMax = 24;  // between two words that a CPU moves
constexpr uint32_t kLineWords = kCacheLineBytes / 8;

// The part of line `line` (counted from the one that holds the verb's first byte) that belongs
// to the verb, as offsets within the verb.
std::pair<uint32_t, uint32_t> line_part(const Verb& verb, uint32_t line) {
  const uint64_t lead = verb.remote_offset % kCacheLineBytes;
  const uint64_t begin = line == 0 ? 0 : line * kCacheLineBytes - lead;
  const uint64_t end = (line + uint64_t{1}) * kCacheLineBytes - lead;
  return {static_cast<uint32_t>(begin),
          static_cast<uint32_t>(end < verb.bytes ? end : uint64_t{verb.bytes})};
}

void move_bytes(const Verb& verb, std::byte* region, uint32_t begin, uint32_t end) {
  auto* local = static_cast<std::byte*>(verb.local);
  if (local == nullptr) return;  // a READ whose initiator is gone
  std::byte* remote = region + verb.remote_offset;
  if (verb.opcode == Opcode::kRead) {
    std::memcpy(local + begin, remote + begin, end - begin);
  } else {
    std::memcpy(remote + begin, local + begin, end - begin);
  }
}

void carry_out_atomic(const Verb& verb, std::byte* region) {
  uint64_t value;
  std::memcpy(&value, region + verb.remote_offset, 8);
  if (verb.local != nullptr) std::memcpy(verb.local, &value, 8);
  if (verb.opcode == Opcode::kFetchAdd) {
    value += verb.operand;
  } else if (value == verb.compare) {
    value = verb.operand;
  } else {
    return;
  }
  std::memcpy(region + verb.remote_offset, &value, 8);
}

}  // namespace

void SimCluster::ring(SimInitiator* initiator, NodeId node, std::span<const Verb> verbs,
                      Completion* completion) {
  const uint32_t index = take_chain();
  SimChain& chain = chains_[index];
  chain.initiator = initiator;
  chain.node = node;
  chain.number = initiator->chains++;
  chain.completion = completion;
  chain.verbs.assign(verbs.begin(), verbs.end());
  if (rewriter) rewriter(initiator->worker, node, chain.verbs);
  chain.cut = chain.verbs.size();
  chain.arrives_ns = now_ns + one_way_ns(*initiator, node) + delay_of(chain);
  ++initiator->in_flight;
  SimQueuePair& pair = initiator->queue_pairs[node];
  if (pair.first == kSimNone) {
    pair.first = pair.last = index;
    schedule(chain.arrives_ns, SimEventKind::kVerb, index);
  } else {
    chains_[pair.last].next = index;
    pair.last = index;
  }
}

bool SimCluster::reachable(NodeId node) const {
  if (regions[node] == nullptr) return false;
  if (!options.dead_node_unreachable) return true;
  for (uint16_t thread = 0; thread < topology.threads_per_node; ++thread) {
    if (slots[topology.worker_of(node, thread)].live()) return true;
  }
  return false;
}

void SimCluster::carry_out_verb(uint32_t index) {
  SimChain& chain = chains_[index];
  if (chain.verb_at == 0 && chain.line_at == 0 && chain.word_at == 0 && !reachable(chain.node)) {
    chain.failed = true;
    chain.cut = 0;
  }
  if (chain.verb_at >= chain.cut) return finish_chain(index);
  uint32_t gap_ns_max = kVerbGapNsMax;
  uint64_t delay_ns = 0;
  Verb& verb = chain.verbs[chain.verb_at];
  if (carry_out_piece(chain, verb)) {
    ++chain.verb_at;
    if (delivery && verb.opcode != Opcode::kWrite && verb.local != nullptr) {
      delivery(chain.initiator->worker, chain.node, verb);
    }
    if (chain.verb_at >= chain.cut) return finish_chain(index);
    delay_ns = delay_of(chain);
  } else {
    gap_ns_max = options.cpu_reads && chain.word_at != 0 ? kWordGapNsMax : kLineGapNsMax;
  }
  uint64_t gap_ns = 1 + random.below(gap_ns_max);
  // Words are many: were each as likely to stall, no long READ would ever be quick.
  if (gap_ns_max != kWordGapNsMax || random.below(16) == 0) gap_ns += stall();
  schedule(now_ns + gap_ns + delay_ns, SimEventKind::kVerb, index);
}

// Before the chain's next verb.
uint64_t SimCluster::delay_of(const SimChain& chain) {
  if (!options.delays.any() || chain.verb_at >= chain.verbs.size()) return 0;
  return delayer_.before(chain.verbs[chain.verb_at], chain.verb_at == 0,
                         topology.is_node_worker(chain.initiator->worker));
}

// True when the verb is complete.
bool SimCluster::carry_out_piece(SimChain& chain, Verb& verb) {
  std::byte* region = regions[chain.node];
  if (verb.opcode == Opcode::kCompareSwap || verb.opcode == Opcode::kFetchAdd) {
    carry_out_atomic(verb, region);
    return true;
  }
  if (!tears(verb)) {
    move_bytes(verb, region, 0, verb.bytes);
    return true;
  }
  if (chain.lines.empty()) plan_lines(chain, verb);
  const uint32_t line = chain.lines[chain.line_at];
  const auto [begin, end] = piece_of(chain, verb, line);
  const bool line_done = last_piece_of_line(chain, verb, line);
  move_bytes(verb, region, begin, end);
  ++chain.word_at;
  if (!line_done) return false;
  chain.word_at = 0;
  if (++chain.line_at < chain.lines.size()) return false;
  chain.lines.clear();
  chain.line_at = 0;
  return true;
}

bool SimCluster::tears(const Verb& verb) const {
  if (verb.opcode == Opcode::kCompareSwap || verb.opcode == Opcode::kFetchAdd) return false;
  const bool one_line = verb.remote_offset % kCacheLineBytes + verb.bytes <= kCacheLineBytes;
  return options.tear && verb.bytes > 8 && (options.cpu_reads || !one_line);
}

std::pair<uint32_t, uint32_t> SimCluster::piece_of(const SimChain& chain, const Verb& verb,
                                                   uint32_t line) const {
  const auto [begin, end] = line_part(verb, line);
  if (!options.cpu_reads) return {begin, end};
  const uint32_t words = (end - begin) / 8;
  const bool descending = verb.opcode == Opcode::kRead && verb.order == WordOrder::kDescending;
  const uint32_t word = descending ? words - 1 - chain.word_at : chain.word_at;
  DCHECK(words <= kLineWords);
  return {begin + word * 8, begin + word * 8 + 8};
}

bool SimCluster::last_piece_of_line(const SimChain& chain, const Verb& verb, uint32_t line) const {
  const auto [begin, end] = line_part(verb, line);
  return !options.cpu_reads || chain.word_at + 1 == (end - begin) / 8;
}

void SimCluster::plan_lines(SimChain& chain, const Verb& verb) {
  const uint64_t lead = verb.remote_offset % kCacheLineBytes;
  const auto lines =
      static_cast<uint32_t>((lead + verb.bytes + kCacheLineBytes - 1) / kCacheLineBytes);
  chain.lines.resize(lines);
  for (uint32_t i = 0; i < lines; ++i) chain.lines[i] = i;
  for (uint32_t i = lines; i > 1 && chooser == nullptr; --i) {
    std::swap(chain.lines[i - 1], chain.lines[random.below(i)]);
  }
  chain.line_at = 0;
  chain.word_at = 0;
}

void SimCluster::finish_chain(uint32_t index) {
  SimChain& chain = chains_[index];
  SimInitiator& initiator = *chain.initiator;
  SimQueuePair& pair = initiator.queue_pairs[chain.node];
  CHECK(pair.first == index && initiator.in_flight > 0);
  --initiator.in_flight;
  pair.first = chain.next;
  if (pair.first == kSimNone) {
    pair.last = kSimNone;
  } else {
    const uint64_t soon_ns = now_ns + 1 + random.below(kVerbGapNsMax);
    const uint64_t arrives_ns = chains_[pair.first].arrives_ns;
    schedule(soon_ns > arrives_ns ? soon_ns : arrives_ns, SimEventKind::kVerb, pair.first);
  }
  if (initiator.gone || chain.completion == nullptr) return give_back_chain(index);
  uint64_t done_ns = now_ns + one_way_ns(initiator, chain.node);
  if (done_ns <= pair.last_done_ns) done_ns = pair.last_done_ns + 1;
  pair.last_done_ns = done_ns;
  schedule(done_ns, SimEventKind::kChainDone, index);
}

void SimCluster::chain_done(uint32_t index) {
  const SimChain& chain = chains_[index];
  const SimInitiator& initiator = *chain.initiator;
  if (!initiator.gone) {
    initiator.endpoint->push_done(chain.completion, chain.failed);
    request_step(initiator.worker);
  }
  give_back_chain(index);
}

uint32_t SimCluster::take_chain() {
  if (free_chain_ == kSimNone) {
    chains_.emplace_back();
    return static_cast<uint32_t>(chains_.size() - 1);
  }
  const uint32_t index = free_chain_;
  free_chain_ = chains_[index].next;
  chains_[index].next = kSimNone;
  return index;
}

void SimCluster::give_back_chain(uint32_t index) {
  SimChain& chain = chains_[index];
  chain.initiator = nullptr;
  chain.completion = nullptr;
  chain.verbs.clear();
  chain.payload.clear();
  chain.lines.clear();
  chain.verb_at = chain.line_at = 0;
  chain.word_at = 0;
  chain.failed = false;
  chain.next = free_chain_;
  free_chain_ = index;
}

}  // namespace rdmacc
