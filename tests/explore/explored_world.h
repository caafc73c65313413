#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/check/history_file.h"
#include "engine/node/node_thread.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/explore/program.h"
#include "tests/explore/world_memory.h"

namespace rdmacc {

// What may be wrong on purpose, for tests of the tests.
struct ExploreMutation {
  RulesOf rules_of = nullptr;
  SimChainRewriter rewriter;
};

// A simulated cluster with a table, one worker per transaction of a program, all of them inside
// the gate and about to begin: that is the snapshot. From there run() lets the program go as the
// chooser says, again and again. One at a time (WorldMemory).
class ExploredWorld {
 public:
  ExploredWorld(const ExploreProgram& program, const ExploreSetup& setup,
                const ExploreMutation& mutation);
  ~ExploredWorld();
  ExploredWorld(const ExploredWorld&) = delete;
  ExploredWorld& operator=(const ExploredWorld&) = delete;

  Status build(SimChooser& chooser);

  void restore() { WorldMemory::instance().restore(); }
  // Lets the transactions go; true when all have ended.
  bool run(uint64_t choices_max);
  // After run(): nothing is locked in `headers`, rows are whole, the history is serializable.
  // Uses the chooser for a last transaction that reads everything. Empty: all is well.
  std::string check(const std::vector<GlobalAddress>& headers);
  // How a transaction ended, as a letter: 'c'ommitted, 'a'borted, 'u'ser abort.
  std::string outcomes() const;
  std::string describe_outcomes() const;
  // The oldest transaction gave way to another (where a protocol promises that it never does).
  bool oldest_died() const;

  uint32_t clients() const { return static_cast<uint32_t>(clients_.size()); }
  WorkerId worker_of_client(uint32_t client) const;
  uint64_t clock_us(WorkerId worker) const;
  bool is_node(WorkerId worker) const { return topology_.is_node_worker(worker); }
  const Topology& topology() const { return topology_; }
  const RegionLayout& layout() const { return layout_; }
  const std::byte* region(NodeId node) const { return regions_[node]; }
  // "x.lock", "gap of x.wts", "log", …
  std::string name_of(NodeId node, uint64_t offset) const;

 private:
  struct Client {
    std::unique_ptr<Coordinator> coordinator;
    Completion go;
    bool arrived = false;
    uint64_t arrived_us = 0;
    bool ended = false;
    bool user_aborted = false;
    Status status;
    std::string problem;
  };
  struct SeenRow {
    std::string key;
    uint64_t version;
    char letter;
  };
  struct Place {
    std::string name;
    NodeId node;
    uint64_t offset, bytes;
  };

  Status open();
  Status load();
  Status start_clients();
  Status warm(Client& client);
  Status run_task(Client& client, const std::function<Status()>& task);
  std::unique_ptr<Client> open_client();
  void prepare_stacks(Scheduler& scheduler);
  void choose_keys();
  void run_transaction(uint32_t index, Client& client);
  Status prepare(Session& session);
  Status operate(Session& session, ExploreOp op, char letter, std::string& problem);
  Status read_all(Session& session, std::string& problem);
  void note_row(const RowView& view, std::string& problem);
  std::string row_of(char letter) const;
  bool whole(std::string_view row) const;
  void name_places();

  const ExploreProgram program_;
  const ExploreSetup setup_;
  const ExploreMutation mutation_;
  Topology topology_;
  const RegionLayout layout_;
  TxnOptions txn_;
  std::string x_, y_, z_;
  TableId table_ = kNoTable;
  std::vector<std::byte*> regions_;
  std::vector<Place> places_;
  // In the world's memory.
  std::unique_ptr<SimFabric> fabric_;
  std::vector<std::unique_ptr<NodeThread>> nodes_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<Client> keeper_;
  HistoryMemory* history_ = nullptr;
  std::vector<SeenRow>* seen_rows_ = nullptr;
};

}  // namespace rdmacc
