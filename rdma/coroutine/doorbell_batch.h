#pragma once
#include <bit>
#include <boost/container/small_vector.hpp>

#include "rdma/base/verb_counters.h"
#include "rdma/coroutine/scheduler.h"
#include "rdma/fabric/mapped_memory.h"

// One round of a coroutine: the verbs that all records of a stage want next. Its caller does not
// know which port of the endpoint carries them out:
//
//   posted      they are gathered into one chain per node; execute() rings every doorbell and
//               yields once until all chains are done, so requests to several nodes are outstanding
//               together (DrTM+H §3.2, §3.3). Only the last verb of a chain is signalled.
//   mapped      each is done in place, where it is added; execute() has nothing left to wait for.
//               Cache misses overlap if what a round will touch is prefetched before.
//   one by one  each is a chain of its own, waited for before the next is added, while the worker's
//               other coroutines stand still: the words that `mapped` touches, in its order, with
//               anything that other workers do between any two.
//
// So a caller fills what it writes before it adds the verb, and looks at what it reads after
// execute(). A batch that is given up before execute() may have been carried out in part. A batch
// of a few verbs takes no memory from the heap.

namespace rdmacc {

// Memory that several verbs of a round go to, at distances from its start: looked up once.
struct VerbTarget {
  GlobalAddress start;
  size_t bytes = 0;
  uint64_t* words = nullptr;  // mapped: where it lies, unless the node is not there
};

class DoorbellBatch {
 public:
  DoorbellBatch(Scheduler& scheduler, VerbCounters& counters)
      : scheduler_(scheduler),
        counters_(counters),
        port_(scheduler.port()),
        mapped_(scheduler.mapped()) {}

  // Of a size that the compiler knows, as of a word or a line, nothing is left in place but to find
  // the memory and to move the words.
  [[gnu::always_inline]] void read(GlobalAddress from, void* local, size_t bytes,
                                   WordOrder order = WordOrder::kAscending) {
    if (__builtin_constant_p(bytes)) return read_inline(from, local, bytes, order);
    read_any(from, local, bytes, order);
  }
  [[gnu::always_inline]] void write(GlobalAddress to, const void* local, size_t bytes) {
    if (__builtin_constant_p(bytes)) return write_inline(to, local, bytes);
    write_any(to, local, bytes);
  }
  void compare_swap(GlobalAddress at, uint64_t expected, uint64_t desired, uint64_t* seen) {
    ++counters_.atomics;
    if (mapped_ == nullptr) return post_compare_swap(at, expected, desired, seen);
    note(at.node(), mapped_->compare_swap(at, expected, desired, seen));
  }
  void fetch_add(GlobalAddress at, uint64_t addend, uint64_t* seen) {
    ++counters_.atomics;
    if (mapped_ == nullptr) return post_fetch_add(at, addend, seen);
    note(at.node(), mapped_->fetch_add(at, addend, seen));
  }

  VerbTarget target(GlobalAddress start, size_t bytes) {
    VerbTarget target{start, bytes};
    if (mapped_ == nullptr) return target;
    target.words = mapped_->words(start, bytes);
    note(start.node(), target.words != nullptr);
    return target;
  }
  void read(const VerbTarget& from, size_t distance, void* local, size_t bytes,
            WordOrder order = WordOrder::kAscending) {
    CHECK(distance + bytes <= from.bytes);
    ++counters_.reads;
    if (mapped_ == nullptr) return post_read(from.start.plus(distance), local, bytes, order);
    if (from.words == nullptr) return;
    mapped_->fence();
    mapped_->read_fenced(from.words + distance / 8, local, bytes, order);
  }
  void compare_swap(const VerbTarget& at, size_t distance, uint64_t expected, uint64_t desired,
                    uint64_t* seen) {
    CHECK(distance + sizeof(uint64_t) <= at.bytes);
    ++counters_.atomics;
    if (mapped_ == nullptr) {
      return post_compare_swap(at.start.plus(distance), expected, desired, seen);
    }
    if (at.words == nullptr) return;
    *seen = mapped_->compare_swap_word(at.words + distance / 8, expected, desired);
  }

  // A round that is about to be added will touch these bytes.
  [[gnu::always_inline]] void prefetch(GlobalAddress from, size_t bytes) {
    if (mapped_ != nullptr) mapped_->prefetch(from, bytes);
  }
  // What was prefetched is on its way: other coroutines may run meanwhile.
  void await_prefetched() {
    if (mapped_ != nullptr) scheduler_.yield_to_ready();
  }

  // A verb is done, by this processor, when it has been added: any memory will do for it.
  bool done_when_added() const { return mapped_ != nullptr; }
  // Nothing is gathered: a caller that adds less at a time loses nothing.
  bool in_place() const { return port_ != Endpoint::Port::kPosted; }

  bool empty() const { return (touched_ | broken_) == 0 && verbs_.empty(); }
  // Rings, yields until everything is done, and is empty again. kUnavailable when a node could
  // not be reached: which of its verbs took effect is unknown. No-op when empty.
  Status execute() {
    if (mapped_ == nullptr) return execute_posted();
    if (touched_ == 0) return Status();
    counters_.doorbells += static_cast<uint64_t>(std::popcount(touched_));
    touched_ = 0;
    ++counters_.round_trips;
    scheduler_.count_round();
    if (!failed_) [[likely]]
      return Status();
    failed_ = false;
    return unreachable();
  }
  // As execute(), of verbs that are posted, while the worker's other coroutines stand still. The
  // caller counts its rounds.
  Status execute_alone();
  static Status unreachable();
  // In place, what was added is done: its results may be looked at, and the round goes on.
  Status settle() {
    if (mapped_ != nullptr && !failed_) return Status();
    return execute();
  }
  // Rings without waiting. The local buffers must stay valid until the next execute() of any
  // batch to the same nodes has returned (chains to one node complete in order).
  void ring_unacknowledged();

 private:
  template <typename T>
  using Verbs = boost::container::small_vector<T, 8>;

  static constexpr uint64_t bit_of(NodeId node) { return uint64_t{1} << (node % 64); }
  void note(NodeId node, bool done) {
    touched_ |= bit_of(node);
    failed_ = failed_ || !done;
  }
  [[gnu::always_inline]] void read_inline(GlobalAddress from, void* local, size_t bytes,
                                          WordOrder order) {
    ++counters_.reads;
    if (mapped_ == nullptr) return post_read(from, local, bytes, order);
    note(from.node(), mapped_->read(from, local, bytes, order));
  }
  [[gnu::always_inline]] void write_inline(GlobalAddress to, const void* local, size_t bytes) {
    ++counters_.writes;
    if (mapped_ == nullptr) return post_write(to, local, bytes);
    note(to.node(), mapped_->write(to, local, bytes));
  }
  void read_any(GlobalAddress from, void* local, size_t bytes, WordOrder order);
  void write_any(GlobalAddress to, const void* local, size_t bytes);
  void post_read(GlobalAddress from, void* local, size_t bytes, WordOrder order);
  void post_write(GlobalAddress to, const void* local, size_t bytes);
  void post_compare_swap(GlobalAddress at, uint64_t expected, uint64_t desired, uint64_t* seen);
  void post_fetch_add(GlobalAddress at, uint64_t addend, uint64_t* seen);
  Status execute_posted();
  bool execute_in_parts();

  void add(NodeId node, const Verb& verb);
  // Rings for what is held and waits for it, alone. False: a node did not carry it out.
  bool wait_alone();
  // Counts the chains in `completion`, unless it is nullptr, and rings their doorbells.
  void ring(Completion* completion);
  void ring_by_node(Completion* completion);

  Scheduler& scheduler_;
  VerbCounters& counters_;
  const Endpoint::Port port_;
  MappedMemory* const mapped_;  // nullptr: verbs are posted
  uint64_t touched_ = 0;        // mapped: nodes of this round, a bit for each (mod 64)
  bool failed_ = false;         // mapped: a node was not there
  uint64_t broken_ = 0;         // one by one: nodes that were not, likewise
  Verbs<Verb> verbs_;           // of all nodes, in the order they came
  Verbs<NodeId> nodes_;         // of each verb
  NodeId node_min_ = 0, node_max_ = 0;
};

}  // namespace rdmacc
