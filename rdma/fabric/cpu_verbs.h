#pragma once
#include "rdma/fabric/verb.h"

// One-sided verbs carried out by a CPU that maps the region: what shm does for itself, and tcp for
// its peers. F2 and F3 of fabric.h hold for all verbs that go through here.

namespace rdmacc {

class CpuVerbs {
 public:
  // `verb` has been checked: words, within the region, and a local buffer.
  void carry_out(const Verb& verb, std::byte* region) {
    auto* remote = reinterpret_cast<uint64_t*>(region + verb.remote_offset);
    switch (verb.opcode) {
      case Opcode::kRead:
        // F2: a process that reads what this chain wrote, or misses it, agrees with what this READ
        // sees.
        if (unfenced_write_) __atomic_thread_fence(__ATOMIC_SEQ_CST);
        unfenced_write_ = false;
        return read_words(verb, remote);
      case Opcode::kWrite:
        unfenced_write_ = true;
        return write_words(verb, remote);
      case Opcode::kCompareSwap: {
        uint64_t seen = verb.compare;
        __atomic_compare_exchange_n(remote, &seen, verb.operand, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        *static_cast<uint64_t*>(verb.local) = seen;
        unfenced_write_ = false;
        return;
      }
      case Opcode::kFetchAdd:
        *static_cast<uint64_t*>(verb.local) =
            __atomic_fetch_add(remote, verb.operand, __ATOMIC_SEQ_CST);
        unfenced_write_ = false;
        return;
    }
  }

 private:
  static void read_words(const Verb& verb, const uint64_t* remote) {
    auto* local = static_cast<uint64_t*>(verb.local);
    const size_t words = verb.bytes / 8;
    if (verb.order == WordOrder::kAscending) {
      for (size_t i = 0; i < words; ++i) local[i] = __atomic_load_n(remote + i, __ATOMIC_ACQUIRE);
    } else {
      for (size_t i = words; i > 0; --i) {
        local[i - 1] = __atomic_load_n(remote + i - 1, __ATOMIC_ACQUIRE);
      }
    }
  }

  static void write_words(const Verb& verb, uint64_t* remote) {
    const auto* local = static_cast<const uint64_t*>(verb.local);
    const size_t words = verb.bytes / 8;
    for (size_t i = 0; i < words; ++i) __atomic_store_n(remote + i, local[i], __ATOMIC_RELEASE);
  }

  bool unfenced_write_ = false;  // a WRITE may still be in the store buffer
};

}  // namespace rdmacc
