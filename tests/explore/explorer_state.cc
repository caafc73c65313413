#include <algorithm>

#include "tests/explore/explorer.h"
#include "tests/explore/state_hash.h"

// What the explorer notes while events happen: the present state, and its story in words.

namespace rdmacc {

// ---- What a state is

// What a coordinator sees from different nodes it waits for together. What a node does for one
// coordinator follows from that one's requests, but for the order of chains in its queue pair
// (state_hash) and for what it does by itself: storage, and the ends of pauses. That is taken in
// its order.
size_t Explorer::source_of(const SimChoice& choice) const {
  if (world_.is_node(choice.worker)) return node_source_of(choice);
  switch (choice.kind) {
    case SimChoice::Kind::kPiece:
      return choice.peer;
    case SimChoice::Kind::kDatagram:
      return world_.topology().nodes + size_t{choice.peer};
    case SimChoice::Kind::kTimer:
      break;
  }
  return world_.topology().nodes + size_t{choice.worker};
}

size_t Explorer::node_source_of(const SimChoice& choice) const {
  const size_t itself = world_.topology().nodes + size_t{choice.worker};
  if (owner_touches_ || choice.kind == SimChoice::Kind::kTimer) return itself;
  if (choice.kind == SimChoice::Kind::kDatagram) {
    return world_.topology().nodes + size_t{choice.peer};
  }
  const std::vector<size_t>& sources = node_work_[choice.worker].source_of_chain;
  return choice.chain < sources.size() ? sources[choice.chain] : itself;
}

Explorer::Fingerprint& Explorer::fingerprint_of(const SimChoice& choice) {
  return observed_[choice.worker * sources() + source_of(choice)];
}

uint64_t Explorer::state_hash() const {
  uint64_t hash = mix(memory_hash_);
  for (size_t i = 0; i < observed_.size(); ++i) {
    if (observed_[i].hash != 0) hash += mix(mix(i + 1) ^ observed_[i].hash);
  }
  for (const NodeWork& work : node_work_) {
    for (size_t chain = work.complete; chain < work.source_of_chain.size(); ++chain) {
      hash = mix(hash * 3 + work.source_of_chain[chain]);
    }
    hash = mix(hash);
  }
  return hash;
}

void Explorer::piece_done(const SimChoice& piece, std::span<const uint64_t> before,
                          std::span<const uint64_t> after) {
  if (mode_ == Mode::kFree) return;
  const WorldMemory::Outside outside;
  ++report_.pieces;
  words_.note(piece, piece.worker);
  const bool in_pages = piece.offset >= world_.layout().pages;
  const NodeId node = piece.peer;
  uint64_t seen = 0;
  bool changed = false;
  for (size_t i = 0; i < before.size(); ++i) {
    const uint64_t offset = piece.offset + 8 * i;
    if (piece.opcode != Opcode::kWrite) seen += hash_of_word(node, offset, before[i]);
    if (before[i] == after[i]) continue;
    changed = changed || words_.shared(node, offset);
    const uint64_t change =
        hash_of_word(node, offset, after[i]) - hash_of_word(node, offset, before[i]);
    memory_hash_ += change;
    if (in_pages) tables_hash_ += change;
    // The owner's CPU may look at any word of its pages.
    if (owner_touches_ && in_pages) words_.note_read(node, offset, static_cast<WorkerId>(node));
  }
  if (piece.opcode == Opcode::kCompareSwap && in_pages) {
    const GlobalAddress header =
        GlobalAddress::make(node, piece.offset - piece.offset % sizeof(Header));
    if (std::find(headers_.begin(), headers_.end(), header) == headers_.end()) {
      headers_.push_back(header);
    }
  }
  Fingerprint& print = fingerprint_of(piece);
  if (!print.in_chain) print.stores_at_look = others_stores(piece.worker);
  print.in_chain = !piece.last_of_chain;
  // A sum: the lines of one verb may come in any order, its initiator sees them together.
  print.hash += mix(mix(piece.offset + 1) ^ mix(seen) ^ (print.verbs + 1));
  print.verbs += piece.last_of_verb ? 1 : 0;
  if (world_.is_node(piece.worker) && piece.last_of_chain) {
    NodeWork& work = node_work_[piece.worker];
    work.complete = piece.chain + 1;
    work.now_for = source_of(piece);
  }
  if (changed) {
    ++stores_;
    ++stores_by_[piece.worker];
  }
  if (tracing_) trace_values(before, after);
}

void Explorer::datagram_arrives(const SimChoice& datagram, std::span<const std::byte> bytes) {
  if (mode_ == Mode::kFree) return;
  uint64_t hash = bytes.size();
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3ull;
  Fingerprint& print = fingerprint_of(datagram);
  print.hash = mix(print.hash * 3 + 1) ^ mix(hash ^ datagram.peer);
  if (world_.is_node(datagram.worker)) node_work_[datagram.worker].now_for = source_of(datagram);
}

// Which of a node's requests has paused is not known: everything it has observed comes before.
void Explorer::note_timer(const SimChoice& timer) {
  uint64_t before = 1;
  if (world_.is_node(timer.worker)) {
    for (size_t source = 0; source < sources(); ++source) {
      before = mix(before * 3 + observed_[timer.worker * sources() + source].hash);
    }
    node_work_[timer.worker].now_for = source_of(timer);
  }
  Fingerprint& print = fingerprint_of(timer);
  print.hash = mix(print.hash * 3 + before);
}

// A node's CPU may have written into its own region, and have looked at what is there.
void Explorer::stepped(WorkerId worker, uint32_t chains) {
  if (mode_ == Mode::kFree || !world_.is_node(worker)) return;
  const WorldMemory::Outside outside;
  NodeWork& work = node_work_[worker];
  work.source_of_chain.resize(chains, work.now_for);
  if (!owner_touches_) return;
  rehash_regions();
  Fingerprint& print = observed_[worker * sources() + world_.topology().nodes + worker];
  print.hash = mix(print.hash * 3 + 2) ^ mix(memory_hash_);
}

void Explorer::rehash_regions() {
  const WorldMemory& memory = WorldMemory::instance();
  memory_hash_ = 0;
  for (size_t i = 0; i < memory.changed_pages(); ++i) {
    const WorldMemory::ChangedPage page = memory.changed_page(i);
    for (NodeId node = 0; node < world_.topology().nodes; ++node) {
      const std::byte* region = world_.region(node);
      if (page.page < region || page.page >= region + world_.topology().region_bytes) continue;
      const auto* now = reinterpret_cast<const uint64_t*>(page.page);
      const auto* then = reinterpret_cast<const uint64_t*>(page.at_snapshot);
      for (size_t word = 0; word < WorldMemory::kPageBytes / 8; ++word) {
        if (now[word] == then[word]) continue;
        const uint64_t offset = static_cast<uint64_t>(page.page - region) + 8 * word;
        memory_hash_ +=
            hash_of_word(node, offset, now[word]) - hash_of_word(node, offset, then[word]);
        if (!words_.written(node, offset)) {
          words_.note_write(node, offset, static_cast<WorkerId>(node));
        }
      }
    }
  }
}

// ---- In words

void Explorer::trace_values(std::span<const uint64_t> before, std::span<const uint64_t> after) {
  trace_ += "     ";
  for (size_t i = 0; i < before.size(); ++i) {
    trace_ += ' ' + std::to_string(before[i]);
    if (before[i] != after[i]) trace_ += "->" + std::to_string(after[i]);
  }
  trace_ += '\n';
}

std::string Explorer::describe(const SimChoice& choice) const {
  std::string actor = "the reader at the end";
  if (world_.is_node(choice.worker)) actor = "node " + std::to_string(choice.worker);
  for (uint32_t client = 0; client < world_.clients(); ++client) {
    if (world_.worker_of_client(client) == choice.worker) actor = "T" + std::to_string(client + 1);
  }
  if (choice.kind == SimChoice::Kind::kTimer) return actor + ": its pause ends";
  if (choice.kind == SimChoice::Kind::kDatagram) {
    return actor + ": hears from worker " + std::to_string(choice.peer);
  }
  static constexpr const char* kVerbs[] = {"READ", "WRITE", "CAS", "FAA"};
  std::string text = actor + ": " + kVerbs[static_cast<size_t>(choice.opcode)] + ' ' +
                     world_.name_of(choice.peer, choice.offset);
  if (choice.bytes > 8) text += " and " + std::to_string(choice.bytes / 8 - 1) + " words more";
  return text;
}

}  // namespace rdmacc
