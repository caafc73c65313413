#pragma once
#include <boost/intrusive/list.hpp>
#include <memory>
#include <vector>

#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// When the transactions of one coordinator begin, wait for each other, and take turns. Coroutines
// of one thread cannot wait by looking again: the one that is waited for gets no turn meanwhile. So
//   - one that another of its coordinator keeps from a lock goes on when that has ended, in the
//     place of an abort, unless that waits for it in turn (the graph of waits is known here);
//   - an attempt that has lost to another all the same begins again when that has ended;
//   - where many attempts lose, a transaction runs through, so that others get their turn only when
//     it has to wait: what turns hide of memory's latency is less than what lost attempts cost.
//
// One per coordinator, its thread alone.
class Admission {
  struct Waiter;

 public:
  explicit Admission(Scheduler& scheduler) : scheduler_(scheduler) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // A transaction's place among those under way, from begin() to end().
  class Place : public boost::intrusive::list_base_hook<
                    boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
   public:
    ~Place() { end(); }
    void end() {
      if (is_linked()) leave();
    }
    // Until that transaction has ended. False: it still is under way, and is not waited for (any
    // longer).
    bool wait_for(uint64_t ctts);
    // Which other of its coordinator had locked what this one has lost for; 0: none that is known.
    uint64_t lost_to = 0;

   private:
    friend class Admission;
    void leave() {
      unlink();
      if (!waiting_.empty()) wake_all();
    }
    void wake_all();
    Admission* of_ = nullptr;
    uint64_t ctts_ = 0;
    uint64_t waits_for_ = 0;
    std::vector<std::shared_ptr<Waiter>> waiting_;
  };

  void begin(Place& place, uint64_t ctts);
  // As Place::wait_for(), by one that is not under way.
  bool wait_for(uint64_t ctts);
  void note_end(bool lost);
  // Many of the last attempts have lost.
  bool crowded() const { return lost_share_ > kCrowdedShare; }

 private:
  static constexpr uint64_t kWaitUsMax = 20'000;
  // A moving average over some sixty attempts, of which one in forty is many.
  static constexpr int32_t kAll = 1 << 20, kAttemptsLog = 6, kCrowdedShare = kAll / 40;

  Place* find(uint64_t ctts);
  bool would_wait_for_itself(const Place& waiting, uint64_t ctts);

  Scheduler& scheduler_;
  boost::intrusive::list<Place, boost::intrusive::constant_time_size<false>> under_way_;
  int32_t lost_share_ = 0;
};

}  // namespace rdmacc
