#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "engine/check/history_file.h"
#include "tests/sim/door/door.h"

namespace rdmacc {

// Stands for the party that decides prepared transactions from outside the engine: it draws what
// becomes of each, remembers it before anything follows from it, and tells the engine of those that
// are in doubt. It commits nothing but what it has heard to be prepared. One per run; the
// coroutines of all its clients use it.
class OutsideDecider {
 public:
  OutsideDecider(uint64_t seed, const HistoryMemory& history) : random_(seed), history_(history) {}

  // As Workload::attempt, in two phases. A transaction that it decides to abort is a proper end.
  Status attempt(const Workload& workload, Session& session, const TxnOptions& options,
                 const TxnInputs& inputs, TxnEffect& effect);
  // From now on what is done in two phases is told to the ledger of `door`, as on its tables.
  void observe(const Door* door) { door_ = door; }
  // In a coroutine of its own, until stop(): decides what is in doubt, some of it only when it was
  // seen several times.
  void serve(Session& session);
  void look_every(uint64_t us_max) { look_us_max_ = us_max; }
  // Called when one that writes has been prepared, before it is decided.
  void when_prepared(std::function<void()> call) { on_prepared_ = std::move(call); }
  void stop() { stopped_ = true; }
  bool serving() const { return serving_; }

  // What became of the transaction that held `ctts` when it was in doubt, or when its session could
  // not finish it; nothing: neither.
  std::optional<bool> outcome_of(uint64_t ctts) const;
  uint64_t doubts() const { return outcomes_.size(); }

 private:
  bool decide(const Gtid& gtid);
  void look(Session& session);
  Status tell(Session& session, bool commit);
  Status commit_prepared(Session& session);

  Random random_;
  const HistoryMemory& history_;
  std::function<void()> on_prepared_;
  uint64_t look_us_max_ = 1'500;
  uint64_t last_xid_ = 0;
  std::set<Gtid> prepared_;            // as its session has heard
  std::map<Gtid, bool> decisions_;     // committed?
  std::map<uint64_t, bool> outcomes_;  // by ctts
  const Door* door_ = nullptr;
  bool stopped_ = false;
  bool serving_ = false;
};

}  // namespace rdmacc
