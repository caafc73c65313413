#include "rdma/sim/sim_choice.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rdma/sim/sim_cluster.h"
#include "rdma/sim/sim_endpoint.h"

namespace rdmacc {

void SimCluster::set_chooser(SimChooser* its_chooser) {
  CHECK(chooser == nullptr && its_chooser != nullptr);
  chooser = its_chooser;
  for (SimSlot& slot : slots) slot.clock_ns = now_ns;
  // What was due by the clock is due by choice now.
  while (!queue.empty()) {
    const SimEvent event = queue.pop();
    schedule(event.at_ns, event.kind, event.index);
  }
}

uint64_t SimCluster::now_ns_of(WorkerId worker) const {
  return chooser == nullptr ? now_ns : slots[worker].clock_ns;
}

// With a chooser each pause takes time for all: what one has waited for is over for the others.
ClockBounds SimCluster::clock_bounds_of(WorkerId worker) const {
  const uint64_t error_us = chooser == nullptr ? options.clock_error_us : 0;
  const uint64_t now_us = (now_ns + passed_ns) / 1000;
  // From as far behind as may be to as far ahead.
  Random places(options.seed ^ (uint64_t{worker} + 1) * 0x9E3779B97F4A7C15);
  const uint64_t behind_us = places.below(2 * error_us + 1);
  return {now_us - std::min(now_us, behind_us), now_us + 2 * error_us - behind_us + 1};
}

void SimCluster::schedule(uint64_t at_ns, SimEventKind kind, uint32_t index) {
  if (chooser == nullptr) return queue.push(at_ns, kind, index);
  switch (kind) {
    case SimEventKind::kChainDone:
    case SimEventKind::kStep:
      at_once_.push_back(SimEvent{at_ns, 0, kind, index});
      return;
    case SimEventKind::kDatagram:
      waiting_datagrams_.push_back(index);
      return;
    case SimEventKind::kVerb:   // stands in its queue pair
    case SimEventKind::kTimer:  // stands in its scheduler
      return;
  }
}

bool SimCluster::run_chosen(const std::function<bool()>& done, uint64_t choices_max) {
  for (uint64_t i = 0; i < choices_max; ++i) {
    while (!at_once_.empty()) {
      const SimEvent event = at_once_.front();
      at_once_.pop_front();
      if (event.kind == SimEventKind::kChainDone) {
        chain_done(event.index);
      } else {
        const auto worker = static_cast<WorkerId>(event.index);
        step_worker(worker);
        chooser->stepped(worker, slots[worker].initiator->chains);
      }
    }
    if (done()) return true;
    gather_choices();
    if (choices_.empty()) return false;
    const size_t chosen = chooser->choose(choices_);
    if (chosen == SimChooser::kStop) return false;
    CHECK(chosen < choices_.size());
    carry_out(choices_[chosen]);
  }
  return done();
}

void SimCluster::gather_choices() {
  choices_.clear();
  for (size_t w = 0; w < slots.size(); ++w) {
    const SimSlot& slot = slots[w];
    if (!slot.live()) continue;
    const auto worker = static_cast<WorkerId>(w);
    for (size_t node = 0; node < slot.initiator->queue_pairs.size(); ++node) {
      const uint32_t index = slot.initiator->queue_pairs[node].first;
      if (index != kSimNone) gather_pieces(index);
    }
    const uint64_t timer_us =
        slot.scheduler == nullptr ? UINT64_MAX : slot.scheduler->next_timer_us();
    if (timer_us == UINT64_MAX) continue;
    SimChoice timer;
    timer.kind = SimChoice::Kind::kTimer;
    timer.worker = worker;
    timer.deadline_us = timer_us;
    choices_.push_back(timer);
  }
  for (const uint32_t index : waiting_datagrams_) {
    SimChoice datagram;
    datagram.kind = SimChoice::Kind::kDatagram;
    datagram.worker = datagrams[index].to;
    datagram.peer = datagrams[index].from;
    datagram.part = datagrams[index].number;
    datagram.index = index;
    choices_.push_back(datagram);
  }
}

// The pieces that may be next of the chain at the head of a queue pair: any line that is left of
// its present verb, or the next word of a line that has begun.
void SimCluster::gather_pieces(uint32_t index) {
  SimChain& chain = chains_[index];
  const Verb& verb = chain.verbs[chain.verb_at];
  SimChoice piece;
  piece.worker = chain.initiator->worker;
  piece.peer = chain.node;
  piece.opcode = verb.opcode;
  piece.index = index;
  piece.chain = chain.number;
  if (!tears(verb)) {
    piece.bytes = verb.bytes;
    piece.offset = verb.remote_offset;
    piece.last_of_verb = true;
    piece.last_of_chain = chain.verb_at + 1 == chain.verbs.size();
    choices_.push_back(piece);
    return;
  }
  if (chain.lines.empty()) plan_lines(chain, verb);
  const size_t line_end = chain.word_at != 0 ? chain.line_at + 1 : chain.lines.size();
  for (size_t i = chain.line_at; i < line_end; ++i) {
    const auto [begin, end] = piece_of(chain, verb, chain.lines[i]);
    piece.part = chain.lines[i];
    piece.bytes = end - begin;
    piece.offset = verb.remote_offset + begin;
    piece.last_of_verb =
        chain.line_at + 1 == chain.lines.size() && last_piece_of_line(chain, verb, chain.lines[i]);
    piece.last_of_chain = piece.last_of_verb && chain.verb_at + 1 == chain.verbs.size();
    choices_.push_back(piece);
  }
}

void SimCluster::carry_out(const SimChoice& choice) {
  switch (choice.kind) {
    case SimChoice::Kind::kPiece:
      return carry_out_chosen_piece(choice);
    case SimChoice::Kind::kDatagram: {
      chooser->datagram_arrives(choice, datagrams[choice.index].bytes);
      std::erase(waiting_datagrams_, choice.index);
      return deliver(choice.index);
    }
    case SimChoice::Kind::kTimer: {
      SimSlot& slot = slots[choice.worker];
      const uint64_t ends_ns = std::max(slot.clock_ns, choice.deadline_us * 1000);
      passed_ns += ends_ns - slot.clock_ns;
      slot.clock_ns = ends_ns;
      return request_step(choice.worker);
    }
  }
}

void SimCluster::carry_out_chosen_piece(const SimChoice& piece) {
  SimChain& chain = chains_[piece.index];
  Verb& verb = chain.verbs[chain.verb_at];
  if (tears(verb) && chain.word_at == 0) {
    for (size_t i = chain.line_at; i < chain.lines.size(); ++i) {
      if (chain.lines[i] == piece.part) std::swap(chain.lines[i], chain.lines[chain.line_at]);
    }
    // The others stay in their order, so that equal states look alike.
    std::sort(chain.lines.begin() + static_cast<ptrdiff_t>(chain.line_at) + 1, chain.lines.end());
  }
  CHECK(reachable(chain.node));
  const std::byte* at = regions[chain.node] + piece.offset;
  std::vector<uint64_t>& before = words_before_;
  before.resize(piece.bytes / 8);
  std::memcpy(before.data(), at, piece.bytes);
  const bool complete = carry_out_piece(chain, verb);
  chooser->piece_done(piece, before,
                      {reinterpret_cast<const uint64_t*>(at), size_t{piece.bytes / 8}});
  if (complete && ++chain.verb_at >= chain.cut) finish_chain(piece.index);
}

}  // namespace rdmacc
