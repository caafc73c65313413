#pragma once
#include <algorithm>
#include <vector>

#include "rdma/base/base.h"
#include "rdma/base/check.h"

namespace rdmacc {

enum class SimEventKind : uint32_t {
  kVerb,       // the next piece of chain `index` is carried out at its target
  kChainDone,  // the completion of chain `index` reaches its initiator
  kDatagram,   // datagram `index` reaches its receiver
  kStep,       // worker `index` runs
  kTimer,      // worker `index` had a timer for this time
};

struct SimEvent {
  uint64_t at_ns;
  uint64_t sequence;  // ties in the order they were pushed: nothing is left to the heap
  SimEventKind kind;
  uint32_t index;

  bool before(const SimEvent& other) const {
    return at_ns != other.at_ns ? at_ns < other.at_ns : sequence < other.sequence;
  }
};

// Priority queue of events by (time, sequence). The earliest one is kept beside the heap: most
// events are the next word of a torn verb, which is pushed and popped again at once.
class SimEventQueue {
 public:
  bool empty() const { return !has_first_ && heap_.empty(); }

  void push(uint64_t at_ns, SimEventKind kind, uint32_t index) {
    const SimEvent event{at_ns, ++sequence_, kind, index};
    if (has_first_) {
      if (!event.before(first_)) return push_heap(event);
      push_heap(first_);
      first_ = event;
    } else if (heap_.empty() || event.before(heap_.front())) {
      first_ = event;
      has_first_ = true;
    } else {
      push_heap(event);
    }
  }

  SimEvent pop() {
    CHECK(!empty());
    if (has_first_) {
      has_first_ = false;
      return first_;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const SimEvent event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool later(const SimEvent& a, const SimEvent& b) { return b.before(a); }
  void push_heap(const SimEvent& event) {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<SimEvent> heap_;
  SimEvent first_{};  // if has_first_: before everything in the heap
  bool has_first_ = false;
  uint64_t sequence_ = 0;
};

}  // namespace rdmacc
