#pragma once
#include <unordered_map>

#include "rdma/sim/sim_choice.h"

namespace rdmacc {

// Which 8-byte words more than one worker touches, at least one of them writing. Only ever grows.
class SharedWords {
 public:
  // A piece of a verb by `worker`; true if a word has become shared by it.
  bool note(const SimChoice& piece, WorkerId worker) {
    bool grew = false;
    for (uint32_t at = 0; at < piece.bytes; at += 8) {
      const uint64_t offset = piece.offset + at;
      if (piece.opcode == Opcode::kRead) {
        grew |= note_read(piece.peer, offset, worker);
      } else {
        // A CAS that fails only reads; taking it for a write costs orders, not soundness.
        grew |= note_write(piece.peer, offset, worker);
      }
    }
    return grew;
  }
  bool note_read(NodeId node, uint64_t offset, WorkerId worker) {
    Touched& word = words_[key(node, offset)];
    word.by |= 1ull << worker;
    return update(word);
  }
  bool note_write(NodeId node, uint64_t offset, WorkerId worker) {
    Touched& word = words_[key(node, offset)];
    word.by |= 1ull << worker;
    word.written = true;
    return update(word);
  }

  bool shared(const SimChoice& piece) const {
    for (uint32_t at = 0; at < piece.bytes; at += 8) {
      const auto word = words_.find(key(piece.peer, piece.offset + at));
      if (word != words_.end() && word->second.shared) return true;
    }
    return false;
  }
  bool shared(NodeId node, uint64_t offset) const {
    const auto word = words_.find(key(node, offset));
    return word != words_.end() && word->second.shared;
  }
  bool written(NodeId node, uint64_t offset) const {
    const auto word = words_.find(key(node, offset));
    return word != words_.end() && word->second.written;
  }
  uint64_t count() const { return count_; }

 private:
  struct Touched {
    uint64_t by = 0;  // a bit per worker
    bool written = false;
    bool shared = false;
  };
  static uint64_t key(NodeId node, uint64_t offset) {
    return GlobalAddress::make(node, offset).bits;
  }
  bool update(Touched& word) {
    if (word.shared || !word.written || (word.by & (word.by - 1)) == 0) return false;
    word.shared = true;
    ++count_;
    return true;
  }

  std::unordered_map<uint64_t, Touched> words_;
  uint64_t count_ = 0;
};

}  // namespace rdmacc
