#pragma once
#include <map>
#include <vector>

#include "engine/log/in_doubt_list.h"
#include "engine/log/resolve.h"

// Transactions in doubt: prepared, and their coordinator died. Node 0 finds them when it resolves
// the dead worker (resolve.h), keeps what it found here, and is told by the deciding party how each
// of them ends. The decision is written into every copy of the log record before anything follows
// from it, so that it outlives node 0; node 0 itself finds the same transactions again after a
// restart, since all that is kept here comes from the rings.

namespace rdmacc {

constexpr MethodId kMethodListInDoubt = 33;
constexpr MethodId kMethodDecideInDoubt = 34;

// Of node 0's thread 0, used by it alone.
class DoubtTable {
 public:
  DoubtTable(Worker& worker, const Topology& topology) : worker_(worker), topology_(topology) {}
  DoubtTable(const DoubtTable&) = delete;
  DoubtTable& operator=(const DoubtTable&) = delete;

  // Registers the methods below. `unresolved`: how many dead workers have not been looked at yet.
  void serve(std::function<size_t()> unresolved);

  // Where nodes have logs on disk: an end is there, on all of them, before what decides it hears
  // that it stands.
  using LogDecision = std::function<Status(uint64_t lock_ctts, bool commit)>;
  void log_decisions(LogDecision log) { log_decision_ = std::move(log); }
  // What such logs hold of a memory that is gone: listed until they are decided, and nothing else
  // is to be done then.
  void add_stored(std::vector<InDoubt> found);
  size_t stored() const { return stored_.size(); }

  // Is there nothing new to do for this dead worker, because what is left of it is in doubt?
  bool waits(WorkerId dead) const;
  // Before a resolution of `dead`, and with what it has found; nothing in doubt forgets it.
  void begin_pass(WorkerId dead);
  void end_pass(WorkerId dead, std::vector<InDoubt> found);
  void failed_pass(WorkerId dead);  // it is made again
  size_t workers() const { return doubts_.size(); }

 private:
  struct OfWorker {
    std::vector<InDoubt> transactions;
    bool decided = false;  // one of them, since the last pass began
    uint32_t deciding = 0;
  };
  Status decide(Gtid gtid, bool commit);
  Status decide_stored(const InDoubt& doubt, bool commit);
  InDoubt* find(Gtid gtid, OfWorker** of);

  Worker& worker_;
  const Topology topology_;
  std::map<WorkerId, OfWorker> doubts_;
  std::vector<InDoubt> stored_;
  LogDecision log_decision_;
};

Result<InDoubtList> list_in_doubt(Worker& by, const Topology& topology, VerbCounters& counters);
// The decision stands when it returns; rows and locks follow soon. kNotFound: no such transaction
// is in doubt; kUnavailable: a node is down, try again.
Status decide_in_doubt(Worker& by, const Topology& topology, Gtid gtid, bool commit,
                       VerbCounters& counters);

}  // namespace rdmacc
