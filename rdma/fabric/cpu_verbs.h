#pragma once
#include "rdma/fabric/verb.h"
#include "rdma/fabric/words_in_order.h"

// One-sided verbs carried out by a CPU that maps the region: what shm does for itself, and tcp for
// its peers. F2 and F3 of fabric.h hold for all verbs that go through here.

namespace rdmacc {

class CpuVerbs {
 public:
  // `verb` has been checked: words, within the region, and a local buffer.
  void carry_out(const Verb& verb, std::byte* region) {
    auto* remote = reinterpret_cast<uint64_t*>(region + verb.remote_offset);
    auto* local = static_cast<uint64_t*>(verb.local);
    switch (verb.opcode) {
      case Opcode::kRead:
        return read(remote, local, verb.bytes / 8, verb.order);
      case Opcode::kWrite:
        return write(remote, local, verb.bytes / 8);
      case Opcode::kCompareSwap:
        *local = compare_swap(remote, verb.compare, verb.operand);
        return;
      case Opcode::kFetchAdd:
        *local = fetch_add(remote, verb.operand);
        return;
    }
  }

  // What comes before a read() does by itself, and the three below do not.
  void fence() {
    // F2: a process that reads what this chain wrote, or misses it, agrees with what a READ behind
    // it sees.
    if (unfenced_write_) __atomic_thread_fence(__ATOMIC_SEQ_CST);
    unfenced_write_ = false;
  }
  // Of a cache line.
  [[gnu::always_inline]] void read_line(const uint64_t* remote, uint64_t* local,
                                        WordOrder order) const {
    if (order == WordOrder::kAscending) {
      words_.load_line_ascending(remote, local);
    } else {
      words_.load_line_descending(remote, local);
    }
  }
  [[gnu::always_inline]] void read(const uint64_t* remote, uint64_t* local, size_t words,
                                   WordOrder order) {
    fence();
    read_fenced(remote, local, words, order);
  }
  [[gnu::always_inline]] void read_fenced(const uint64_t* remote, uint64_t* local, size_t words,
                                          WordOrder order) const {
    if (order == WordOrder::kAscending) {
      words_.load_ascending(remote, local, words);
    } else {
      words_.load_descending(remote, local, words);
    }
  }

  [[gnu::always_inline]] void write(uint64_t* remote, const uint64_t* local, size_t words) {
    unfenced_write_ = true;
    words_.store_ascending(remote, local, words);
  }

  // What was there.
  uint64_t compare_swap(uint64_t* remote, uint64_t expected, uint64_t desired) {
    __atomic_compare_exchange_n(remote, &expected, desired, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    unfenced_write_ = false;
    return expected;
  }

  uint64_t fetch_add(uint64_t* remote, uint64_t addend) {
    unfenced_write_ = false;
    return __atomic_fetch_add(remote, addend, __ATOMIC_SEQ_CST);
  }

 private:
  bool unfenced_write_ = false;  // a WRITE may still be in the store buffer
  const WordsInOrder words_{};
};

}  // namespace rdmacc
