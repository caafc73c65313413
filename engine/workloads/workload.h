#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/session.h"
#include "rdma/base/random.h"

// What a benchmark or a test runs: tables and rows to load, transactions to draw and attempt, and
// what must hold afterwards. Knows the engine through its session alone. One object is shared by
// all workers of a process and is constant once the tables exist, so any thread may use it.

namespace rdmacc {

// The inputs of one transaction, drawn once, so that every attempt does the same.
struct TxnInputs {
  uint32_t kind = 0;
  std::array<uint64_t, 3> values{};
};

// What one finished transaction changed in the quantity that the invariant speaks of.
struct TxnEffect {
  int64_t delta = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual const char* name() const = 0;

  // From a coroutine, once, before anything else.
  virtual Status create_tables(Session& session) = 0;
  // Loads the `part`-th of `parts` equal shares of the rows; parts may be loaded by several
  // coroutines at once.
  virtual Status load(Session& session, const TxnOptions& options, uint64_t part,
                      uint64_t parts) = 0;

  virtual TxnInputs draw(Random& random) const = 0;
  // One attempt, from begin() to commit() or to the user's own abort(). When it is not ok the
  // transaction has been aborted; kAborted: try again with the same inputs.
  virtual Status attempt(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                         TxnEffect& effect) const = 0;

  // One attempt at checking the invariant once nothing else runs. `delta` is the sum over all
  // committed transactions. An empty violation: it holds.
  virtual Status check(Session& session, const TxnOptions& options, int64_t delta,
                       std::string& violation) const = 0;
};

// Ends a transaction after `status`: aborts it when that is an error. Gives the status back.
Status abort_unless_ok(Session& session, Status status);

// Repeats `attempt` while it is kAborted, yielding between; gives up after kAttemptsMax.
constexpr uint32_t kAttemptsMax = 1'000'000;
Status retry_aborted(Scheduler& scheduler, const std::function<Status()>& attempt);

}  // namespace rdmacc
