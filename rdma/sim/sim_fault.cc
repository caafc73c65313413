#include <cstring>

#include "rdma/sim/sim_cluster.h"
#include "rdma/sim/sim_endpoint.h"

// Workers come, leave and die. A dead process carries out a prefix of the verbs that it posted
// to each node, perhaps up to the middle of one, and then nothing more.

namespace rdmacc {

bool SimCluster::claimable(WorkerId worker) const {
  const SimSlot& slot = slots[worker];
  switch (slot.state) {
    case SimSlot::State::kFree:
      return true;
    case SimSlot::State::kLive:
      return false;
    case SimSlot::State::kLeft:
      return slot.initiator->in_flight == 0;
    case SimSlot::State::kKilled:
      return false;
  }
  return false;
}

SimInitiator* SimCluster::claim(WorkerId worker, SimEndpoint* endpoint) {
  SimSlot& slot = slots[worker];
  CHECK(!slot.live());
  if (slot.initiator != nullptr && slot.initiator->in_flight > 0) {
    // Only a node's thread is restarted without waiting: its predecessor is fenced now.
    CHECK(topology.is_node_worker(worker));
    for (SimQueuePair& pair : slot.initiator->queue_pairs) {
      for (uint32_t i = pair.first; i != kSimNone; i = chains_[i].next) chains_[i].cut = 0;
    }
  }
  initiators_.push_back(std::make_unique<SimInitiator>());
  SimInitiator* initiator = initiators_.back().get();
  initiator->worker = worker;
  initiator->incarnation = ++slot.incarnation;
  initiator->endpoint = endpoint;
  initiator->queue_pairs.resize(topology.nodes);
  slot.state = SimSlot::State::kLive;
  slot.initiator = initiator;
  slot.scheduler = nullptr;
  slot.timer_ns = UINT64_MAX;
  return initiator;
}

void SimCluster::leave(SimInitiator* initiator) {
  SimSlot& slot = slots[initiator->worker];
  if (slot.initiator == initiator) {
    slot.scheduler = nullptr;
    if (slot.live()) slot.state = SimSlot::State::kLeft;
  }
  if (!initiator->gone) abandon_chains(*initiator, /*by_chance=*/false);
  initiator->endpoint = nullptr;
}

void SimCluster::kill(WorkerId worker) {
  CHECK(worker < slots.size());
  SimSlot& slot = slots[worker];
  if (!slot.live()) return;
  slot.state = SimSlot::State::kKilled;
  abandon_chains(*slot.initiator, /*by_chance=*/true);
  slot.initiator->endpoint->forget_arrivals();
  for (SimDatagram& datagram : datagrams) {
    if (datagram.references > 0 && datagram.from == worker && random.percent(50)) {
      datagram.lost = true;
    }
  }
}

bool SimCluster::departed(WorkerId worker) const {
  const SimSlot& slot = slots[worker];
  return slot.state == SimSlot::State::kKilled && slot.initiator->in_flight == 0 &&
         !topology.is_node_worker(worker);
}

void SimCluster::abandon_chains(SimInitiator& initiator, bool by_chance) {
  initiator.gone = true;
  for (SimQueuePair& pair : initiator.queue_pairs) {
    // Half of the queue pairs still carry out all that was posted.
    bool all = !by_chance || random.percent(50);
    for (uint32_t i = pair.first; i != kSimNone; i = chains_[i].next) {
      SimChain& chain = chains_[i];
      if (!all) {
        const size_t left = chain.verbs.size() - chain.verb_at;
        chain.cut = pair.first == i ? chain.verb_at + random.below(left + 1) : 0;
      }
      detach_buffers(chain);
    }
  }
}

// The local buffers go with their owner: WRITEs keep a copy, READs and atomics report nothing.
void SimCluster::detach_buffers(SimChain& chain) {
  chain.completion = nullptr;
  size_t words = 0;
  for (size_t i = chain.verb_at; i < chain.cut; ++i) {
    if (chain.verbs[i].opcode == Opcode::kWrite) words += chain.verbs[i].bytes / 8;
  }
  chain.payload.resize(words);
  size_t at = 0;
  for (size_t i = chain.verb_at; i < chain.verbs.size(); ++i) {
    Verb& verb = chain.verbs[i];
    if (verb.opcode != Opcode::kWrite || i >= chain.cut) {
      verb.local = nullptr;
      continue;
    }
    std::memcpy(&chain.payload[at], verb.local, verb.bytes);
    verb.local = &chain.payload[at];
    at += verb.bytes / 8;
  }
}

}  // namespace rdmacc
