#pragma once
#include <cstring>

#include "rdma/coroutine/doorbell_batch.h"

// Verbs that are carried out where they are asked for, as the mapped port has it, for code that is
// compiled for that: it looks its memory up once, keeps what it reads in registers or on its stack,
// and has no batch. The simulator runs the same code with verbs that are waited for one at a time,
// so that anything that other workers do may happen between any two.
//
//   MappedPort   words of mapped memory
//   SteppedPort  chains of one verb, each waited for; the worker's other coroutines stand still
//
// Both have:
//   Place at = port.find(start, bytes)    memory of one node; lost(at): the node is not there
//   port.find_within(start, bytes)        the same, where the layout is known to hold so much
//   port.read_line(at, local, order)      the cache line that begins there
//   port.read(at, distance, local, bytes, order), write(…), write_bytes(…), compare_swap(…), …
//   port.failed()                         a node did not carry out a verb; the later ones are none,
//                                         until port.forget_failure()
//   port.end_round()                      counts what was done as one round, of one doorbell

namespace rdmacc {

// Nodes that did not carry out their verbs: what is wanted of others goes on.
class LostNodes {
 public:
  bool any() const { return nodes_ != 0; }
  bool has(NodeId node) const { return (nodes_ & bit_of(node)) != 0; }
  void add(NodeId node) { nodes_ |= bit_of(node); }

 private:
  static constexpr uint64_t bit_of(NodeId node) { return uint64_t{1} << (node % 64); }
  uint64_t nodes_ = 0;
};

class MappedPort {
 public:
  using Place = uint64_t*;

  MappedPort(Scheduler& scheduler, VerbCounters& counters)
      : scheduler_(scheduler), counters_(counters), memory_(*scheduler.mapped()) {
    memory_.fence();
  }

  Place find(GlobalAddress start, size_t bytes) { return memory_.words(start, bytes); }
  Place find_within(GlobalAddress start, size_t /*bytes*/) { return memory_.words_within(start); }
  static bool lost(Place at) { return at == nullptr; }
  static constexpr bool failed() { return false; }
  static constexpr void forget_failure() {}

  [[gnu::always_inline]] void read_line(Place at, void* local, WordOrder order) {
    fence();
    ++counters_.reads;
    memory_.read_line(at, local, order);
  }
  [[gnu::always_inline]] void read(Place at, size_t distance, void* local, size_t bytes,
                                   WordOrder order = WordOrder::kAscending) {
    fence();
    ++counters_.reads;
    memory_.read_fenced(at + distance / 8, local, bytes, order);
  }
  [[gnu::always_inline]] void write(Place at, size_t distance, const void* local, size_t bytes) {
    wrote_ = true;
    ++counters_.writes;
    memory_.write_words(at + distance / 8, local, bytes);
  }
  // Padded with zeros to whole words.
  void write_bytes(Place at, size_t distance, std::string_view bytes) {
    wrote_ = true;
    ++counters_.writes;
    uint64_t* words = at + distance / 8;
    const size_t whole = bytes.size() / 8 * 8;
    if (whole > 0) memory_.write_words(words, bytes.data(), whole);
    if (whole == bytes.size()) return;
    uint64_t last = 0;
    std::memcpy(&last, bytes.data() + whole, bytes.size() - whole);
    memory_.write_words(words + whole / 8, &last, 8);
  }
  // What was there.
  uint64_t compare_swap(Place at, size_t distance, uint64_t expected, uint64_t desired) {
    ++counters_.atomics;
    return memory_.compare_swap_word(at + distance / 8, expected, desired);
  }
  uint64_t fetch_add(Place at, size_t distance, uint64_t addend) {
    ++counters_.atomics;
    return memory_.fetch_add_word(at + distance / 8, addend);
  }

  [[gnu::always_inline]] void prefetch(GlobalAddress from, size_t bytes) {
    memory_.prefetch(from, bytes);
  }
  // A header and the lines behind it that most records end in.
  [[gnu::always_inline]] void prefetch_slot(GlobalAddress header) { memory_.prefetch_slot(header); }
  // What was prefetched is on its way: other coroutines may run meanwhile.
  void await_prefetched() { scheduler_.yield_to_ready(); }
  void end_round() {
    ++counters_.doorbells;
    ++counters_.round_trips;
    scheduler_.count_round();
  }

 private:
  Scheduler& scheduler_;
  VerbCounters& counters_;
  // Between a write and a read behind it. Without writes the compiler knows that there is none.
  void fence() {
    if (wrote_) memory_.fence();
    wrote_ = false;
  }

  MappedMemory& memory_;
  bool wrote_ = false;
};

class SteppedPort {
 public:
  struct Place {
    GlobalAddress start;
    size_t bytes = 0;
  };
  // `registered`: of kBytes, for what goes over the wire.
  static constexpr size_t kBytes = 1024;
  SteppedPort(Scheduler& scheduler, VerbCounters& counters, std::byte* registered)
      : batch_(scheduler, counters), counters_(counters), registered_(registered) {}

  static Place find(GlobalAddress start, size_t bytes) { return {start, bytes}; }
  static Place find_within(GlobalAddress start, size_t bytes) { return {start, bytes}; }
  static bool lost(const Place&) { return false; }
  bool failed() const { return failed_; }
  void forget_failure() { failed_ = false; }

  void read_line(const Place& at, void* local, WordOrder order) {
    read(at, 0, local, kCacheLineBytes, order);
  }
  void read(const Place& at, size_t distance, void* local, size_t bytes,
            WordOrder order = WordOrder::kAscending) {
    if (failed_) return std::memset(local, 0, bytes), void();
    batch_.read(within(at, distance, bytes), registered_, bytes, order);
    finish();
    std::memcpy(local, registered_, bytes);
  }
  void write(const Place& at, size_t distance, const void* local, size_t bytes) {
    if (failed_) return;
    std::memcpy(registered_, local, bytes);
    batch_.write(within(at, distance, bytes), registered_, bytes);
    finish();
  }
  void write_bytes(const Place& at, size_t distance, std::string_view bytes) {
    if (failed_) return;
    const size_t padded = (bytes.size() + 7) / 8 * 8;
    CHECK(padded <= kBytes);
    std::memset(registered_ + padded - 8, 0, 8);
    std::memcpy(registered_, bytes.data(), bytes.size());
    batch_.write(within(at, distance, padded), registered_, padded);
    finish();
  }
  uint64_t compare_swap(const Place& at, size_t distance, uint64_t expected, uint64_t desired) {
    if (failed_) return ~expected;
    batch_.compare_swap(within(at, distance, 8), expected, desired, word());
    finish();
    return failed_ ? ~expected : *word();
  }
  uint64_t fetch_add(const Place& at, size_t distance, uint64_t addend) {
    if (failed_) return 0;
    batch_.fetch_add(within(at, distance, 8), addend, word());
    finish();
    return *word();
  }

  static void prefetch(GlobalAddress, size_t) {}
  static void prefetch_slot(GlobalAddress) {}
  static void await_prefetched() {}
  // A round trip is what it would be over a network, and not each verb.
  void end_round() { ++counters_.round_trips; }

 private:
  static GlobalAddress within(const Place& at, size_t distance, size_t bytes) {
    CHECK(bytes <= kBytes && distance + bytes <= at.bytes);
    return at.start.plus(distance);
  }
  uint64_t* word() const { return reinterpret_cast<uint64_t*>(registered_); }
  void finish() { failed_ = !batch_.execute_alone().ok() || failed_; }

  DoorbellBatch batch_;
  VerbCounters& counters_;
  std::byte* const registered_;
  bool failed_ = false;
};

}  // namespace rdmacc
