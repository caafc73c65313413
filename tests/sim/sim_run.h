#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/check/history_file.h"
#include "engine/index/descent.h"
#include "engine/node/node_thread.h"
#include "engine/workloads/workload.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/sim/aim/aimed_faults.h"
#include "tests/sim/door/door_surroundings.h"
#include "tests/sim/growing/fresh_tables.h"
#include "tests/sim/outside/outside_parents.h"
#include "tests/sim/outside_decider.h"
#include "tests/sim/strikes.h"

// One run of a workload on a simulated cluster, decided by a scenario's seed alone: loading,
// transactions on several coordinators, faults, and then everything that must hold at rest.

namespace rdmacc {

struct SimScenario {
  enum class Load : uint8_t {
    kMixed,
    kBank,
    kPredicate,
    kIndexed,
    kLoads,
    kDoor,
    kHeads,
    kFresh,
    kOutside
  };

  uint64_t seed = 1;
  Protocol protocol = Protocol::kNowait;
  LockMode lock_mode = LockMode::kExclusive;
  uint16_t code = 0;
  Load load = Load::kMixed;
  // Of all but kBank's transactions; nothing: the workload's own share.
  std::optional<uint32_t> read_only_percent;
  uint32_t keys = 0;           // of kMixed; 0: drawn
  uint32_t history = 0;        // of kMixed's tables; 0: its own
  uint32_t stall_percent = 0;  // of all events; 0: drawn, a few
  bool cpu_moves = true;       // verbs move single words, as a CPU does; else whole cache lines
  bool one_by_one = false;     // verbs are carried out as on mapped memory, one at a time
  VerbSavings savings;         // of the coordinators' verbs, where they are posted
  uint64_t events_max = 200'000'000;  // of one phase; more is a hang
  // Transactions whose keys are known run as procedures, under a protocol that executes these.
  bool declared = false;
  // Transactions are prepared, and decided from outside (outside_decider.h).
  bool prepared = false;
  uint32_t loss_percent = 0, duplicate_percent = 0;
  uint32_t kills = 0;                     // coordinators that die
  uint32_t node_restarts = 0;             // nodes that die and come back
  uint64_t fault_window_events = 12'000;  // within which they come; a short run takes so many
  uint32_t coordinators = 3;
  uint32_t coroutines = 2;      // of each
  uint32_t transactions = 10;   // of each coroutine
  SimDelays delays;             // between verbs
  bool tight = false;           // kDoor: so little memory that it is full now and then
  uint32_t strikes = 0;         // nodes that die while their index changes (strikes.h)
  bool aimed = false;           // kills and node_restarts come when a log entry was written
  uint32_t cut_short = 0;       // nodes that die while a row is installed
  uint32_t in_doubt = 0;        // nodes that die when a transaction has been prepared
  uint32_t cancel_percent = 0;  // of the attempts: the user cancels, at any moment
  uint64_t away_us_min = 0;
  uint64_t away_us_max = 5'000;  // how long a dead node stays away
  bool unreachable = false;      // a dead node's memory, as over a wire
  bool die_at_end = false;       // coordinators end by dying: what they have left is resolved
  // What follows on a run that was sound (second_life.cc): its nodes are started again, its tables
  // are dropped and made again; then transactions go on, and all is checked once more.
  bool restarts_after = false, drops_after = false;
  uint32_t lone_transactions = 0;  // at the very end (lone_session.h)
  uint32_t deep_rows = 0;          // of each of kLoads' transactions (hot_keys.h)
  uint32_t rows_at_once = 0;       // of each of kLoads' transactions; 0: drawn
  uint32_t fillers_percent = 100;  // of kHeads' transactions that add: those that add many rows
  bool long_rows = false;          // kDoor: a few that take more than a page
  bool long_keys = false;          // kDoor: a third of the keys take a block
  uint32_t scan_percent = 0;       // kDoor: of the operations, besides those that are drawn
  uint32_t lock_percent = 0;       // likewise, early locks
  bool visited = false;            // kDoor: most visit the table that is dropped, again and again
  bool tall = false;               // kIndexed: indexes of three levels
  bool lazy = false;               // kDoor: long pauses, in which tombstones are due
  bool late = false;               // some events come milliseconds late
  uint64_t rest_us = 0;            // of every client, half way
  std::optional<FaultAim> aim;     // of kills and node_restarts, in place of any event
  // For tests of the tests: other rules than the registry's, and other hooks of the fabric.
  RulesOf rules_of = nullptr;
  std::function<void(SimFabric&)> prepare;
  Covers covers = covers_by_fences;  // kIndexed's
  OutsideParentsOptions::LeftOut outside_leaves_out =
      OutsideParentsOptions::LeftOut::kNothing;  // kOutside's
};

// Whether a history is what its protocol promises. Violations of real time are counted; they are
// an error where the protocol is strictly serializable.
Status judge_history(const std::vector<HistoryTransaction>& history, Protocol protocol,
                     uint64_t& real_time_violations);

class SimRun {
 public:
  explicit SimRun(const SimScenario& scenario);
  ~SimRun();
  SimRun(const SimRun&) = delete;
  SimRun& operator=(const SimRun&) = delete;

  // Empty, or a sentence about the first thing that was wrong.
  std::string run();

  const std::vector<HistoryTransaction>& history() const { return history_.transactions(); }
  std::string history_text() const;
  uint64_t seed() const { return scenario_.seed; }
  uint64_t committed() const { return committed_; }
  uint64_t events() const { return fabric_->events(); }
  uint32_t resolved() const { return resolved_; }
  uint64_t splits() const;
  // Of the workload kFresh: those before a commit.
  uint64_t loads() const { return fresh_ != nullptr ? fresh_->loads() : 0; }
  const OutsideParents* outside_parents() const { return outside_; }  // the workload kOutside
  // Of a protocol that does not promise to respect real time.
  uint64_t real_time_violations() const { return real_time_violations_; }
  uint64_t reader_count_sweeps() const { return reader_count_sweeps_; }
  uint64_t doubts() const { return decider_.doubts(); }  // transactions that were in doubt
  // kDoor's operations beside changes of the index.
  const StructureCounts& structure() const { return ledger_.counts(); }
  uint64_t drops() const { return surroundings_ == nullptr ? 0 : surroundings_->drops(); }
  uint32_t struck() const { return strikes_ == nullptr ? 0 : strikes_->struck(); }
  uint32_t aimed_struck() const { return aimed_ == nullptr ? 0 : aimed_->struck(); }
  uint64_t full() const { return surroundings_ == nullptr ? 0 : surroundings_->full(); }
  // The most attempts that one transaction has made, by TxnInputs::kind.
  const std::map<uint32_t, uint32_t>& attempts_max() const { return attempts_max_; }
  uint64_t exclusive() const;  // attempts of living coordinators in exclusive gate mode

 private:
  struct Client {
    std::unique_ptr<Coordinator> coordinator;  // nullptr once killed
    uint32_t running = 0;
  };
  struct Fault {
    enum Kind : uint8_t { kKillCoordinator, kRestartNode } kind;
    uint64_t event;
    uint32_t target;
  };

  std::unique_ptr<Workload> make_workload();
  Status open_node(NodeId node);
  void close_node(NodeId node, bool kill);
  Result<std::unique_ptr<Coordinator>> open_coordinator();
  void close_coordinator(std::unique_ptr<Coordinator> coordinator);
  // Runs `task` on the coordinator until it has returned; its status, or that it hangs.
  Status run_task(Scheduler& scheduler, const std::function<Status()>& task);

  Status load();
  Status run_clients();
  void start_client(Client& client);
  Status run_attempt(Session& session, const TxnInputs& inputs, TxnEffect& effect);
  Status attempt_in_its_way(Session& session, const TxnInputs& inputs, TxnEffect& effect);
  Status end_decider();
  void start_surroundings();
  Status end_surroundings();
  bool ends_properly(const Status& status, const TxnInputs& inputs, Scheduler& scheduler) const;
  void run_transactions(Client& client, uint64_t seed);
  bool clients_ended() const;
  uint32_t resolved_so_far() const;
  bool run_until_clients_ended();
  std::string describe_hang() const;
  void plan_faults();
  void may_strike_prepared();
  void inject_due_faults(uint64_t event);
  bool inject(const Fault& fault);  // false: it is dead already
  bool inject(const AimedFaults::Action& action);
  bool hold(NodeId node);
  bool flip_a_bit(const AimedFaults::Action& action);
  Status use_every_worker();
  void start_due_nodes();
  void end_coordinators(uint64_t event);
  void end_those_left_to_resolution(uint64_t event);
  bool loses_nodes() const {
    return scenario_.node_restarts + scenario_.strikes + scenario_.cut_short + scenario_.in_doubt >
           0;
  }
  bool loses_coordinators() const { return scenario_.kills > 0 || scenario_.die_at_end; }
  // Does nothing excuse a unit of memory, or a row's count, that is lost?
  bool loses_nothing() const {
    return !loses_nodes() && !loses_coordinators() && door_ == nullptr &&
           scenario_.loss_percent == 0;
  }

  // What follows on a run that was sound.
  Status live_again();
  Status drop_tables();
  Status make_tables_again();
  Status restart_nodes();
  Status run_clients_again();
  Status check_counts();
  Status check_splits(NodeId node);
  Status check_alone();
  Status check_index_alone();

  Status check_at_rest();
  Status finish_background();
  Status check_locks(NodeId node);
  Status find_lock(NodeThread& thread, NodeId node) const;
  Status find_share(NodeThread& thread) const;
  Status check_tables();
  Status check_acknowledged();
  Status check_workload();
  Status check_history();
  std::vector<HistoryTransaction> settled_history() const;

  const SimScenario scenario_;
  Random random_;  // of the harness; the fabric has its own
  Topology topology_;
  ProcedureRegistry procedures_;
  NodeOptions node_options_;
  EngineOptions engine_options_;
  TxnOptions txn_;
  std::unique_ptr<SimFabric> fabric_;
  std::unique_ptr<Workload> workload_;
  Door* door_ = nullptr;               // workload_, if it is kDoor
  FreshTables* fresh_ = nullptr;       // or kFresh
  OutsideParents* outside_ = nullptr;  // or kOutside
  StructureLedger ledger_;             // outlives the nodes, and so does strikes_
  std::unique_ptr<Strikes> strikes_;
  std::unique_ptr<AimedFaults> aimed_;
  std::unique_ptr<DoorSurroundings> surroundings_;
  uint32_t surrounding_ = 0;  // coroutines that run
  HistoryMemory history_;
  std::vector<std::vector<std::unique_ptr<NodeThread>>> nodes_;  // [node][thread]
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<Coordinator> keeper_;  // loads and checks
  OutsideDecider decider_;
  std::vector<Fault> faults_;               // by event
  std::vector<uint64_t> back_at_ns_;        // when a dead node comes back, by node
  uint64_t linger_ns_ = 0, end_at_ns_ = 0;  // of coordinators that die at the end
  // What the nodes of a deterministic protocol have executed, by ctts.
  struct Ordered {
    uint64_t stamp = 0;
    std::vector<HistoryEvent> events;  // of a procedure
  };
  std::map<uint64_t, Ordered> ordered_;
  uint32_t transactions_ = 0;  // of each coroutine
  int64_t delta_ = 0;
  uint64_t committed_ = 0;
  uint32_t resolved_ = 0, killed_ = 0;
  bool left_to_resolution_ = false;  // a client has a transaction that only its end decides
  uint32_t left_in_doubt_ = 0;       // nodes that are still to die when a transaction was prepared
  uint64_t real_time_violations_ = 0;
  uint64_t reader_count_sweeps_ = 0;
  std::map<uint32_t, uint32_t> attempts_max_;
  Status failure_;  // first of any client or fault
};

}  // namespace rdmacc
