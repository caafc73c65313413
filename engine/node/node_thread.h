#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/durable/node_log.h"
#include "engine/log/in_doubt.h"
#include "engine/log/reader_count_sweep.h"
#include "engine/protocols/calvin/sequencer.h"
#include "engine/storage/wire/storage_service.h"
#include "engine/txn/remote/stage_server.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

struct NodeOptions {
  uint64_t resolve_every_us = 100'000;  // how often node 0 looks for dead coordinators
  uint64_t maintain_every_us = 3'000;   // at most so often, and only when something is pending
  // As long as all that is pending waits for a transaction to end, twice as long each time up to:
  uint64_t maintain_every_us_max = 100'000;
  RulesOf rules_of = nullptr;  // nullptr: the registry's (see EngineOptions)
  // How long node 0 keeps the protocol gate closed, at most, for transactions inside to end.
  uint64_t drain_us_max = ReaderCountSweeper::kDrainUsMax;
  // Told in a sentence what an operator may want to know; empty: no messages.
  std::function<void(const std::string&)> log;
  SequencerOptions order;
  uint64_t keep_versions_us = StorageService::kKeepVersionsUs;
  uint64_t recycle_every_us = StorageService::kRecycleEveryUs;
  StructureObserver* structure = nullptr;  // told how indexes change; not owned
  std::optional<DurableOptions> durable;   // rows are on disk; else in memory alone
};

// One thread of a node: its worker and what it serves. Every thread serves RPC stages; thread 0
// also owns the node's storage, and thread 0 of node 0 resolves coordinators that died. All of
// it runs in coroutines of the worker's scheduler, so the thread that steps it runs the node: a
// thread of rdmacc_node, or the simulator. Used by one thread.
class NodeThread {
 public:
  // Joins the fabric as the thread and, on thread 0, formats or reopens the node's region. kCorrupt
  // with kDiscardMemory: what is there is of an unfinished recovery.
  static Result<std::unique_ptr<NodeThread>> open(Fabric& fabric, NodeId node, uint16_t thread,
                                                  const NodeOptions& options);
  // Ends whatever is under way; a node that ends so may be opened again.
  ~NodeThread();
  NodeThread(const NodeThread&) = delete;
  NodeThread& operator=(const NodeThread&) = delete;

  Worker& worker() { return worker_; }
  // Its rows are there. False while it gets them back from disk.
  bool serving() const { return node_log_ == nullptr || node_log_->serving(); }
  // Not ok: its log on disk has failed, and the node has to end.
  Status failure() const { return node_log_ == nullptr ? Status() : node_log_->failure(); }
  bool failed() const { return node_log_ != nullptr && node_log_->failed(); }
  // nullptr but on thread 0.
  StorageService* storage() { return storage_.get(); }
  uint64_t resolved_workers() const { return resolved_workers_; }
  // Dead workers of which transactions are in doubt; 0 but on thread 0 of node 0.
  size_t workers_in_doubt() const { return doubts_ == nullptr ? 0 : doubts_->workers(); }
  // Sweeps of shared locks that this process has completed; 0 but on thread 0 of node 0.
  uint64_t reader_count_sweeps() const { return sweeper_ == nullptr ? 0 : sweeper_->sweeps(); }

 private:
  NodeThread(Fabric& fabric, NodeId node, uint16_t thread, const NodeOptions& options,
             std::unique_ptr<Endpoint> endpoint);

  Status open_log();
  StorageService::Guard guard();
  void serve();
  void serve_node_0();
  void maintain_when_pending();
  void maintain();
  void resolve_for_ever();
  void resolve_departed();
  void end_resolution(bool all);
  InstallCommitted installer();
  bool left_alone(WorkerId dead) const;
  void log_resolved(WorkerId dead, const ResolveReport& done) const;
  void sweep_reader_counts();
  void release(WorkerId resolved);
  void log_failure(const std::string& sentence);
  void log(const std::string& sentence) const;

  Fabric& fabric_;
  const NodeId node_;
  const uint16_t thread_;
  const NodeOptions options_;
  std::unique_ptr<CallerFence> fence_;  // outlives the handlers, which are the worker's
  Worker worker_;
  std::unique_ptr<StorageService> storage_;
  std::unique_ptr<NodeLog> node_log_;  // thread 0, with durability on disk
  std::unique_ptr<StageServer> stages_;
  std::unique_ptr<ReaderCountSweeper> sweeper_;  // of thread 0 of node 0
  std::vector<WorkerId> unswept_;                // dead, and resolved but for reader counts
  std::unique_ptr<DoubtTable> doubts_;           // of thread 0 of node 0
  std::unique_ptr<Sequencer> sequencer_;         // thread 0
  bool maintaining_ = false;
  bool told_out_of_eras_ = false;
  uint64_t maintained_us_ = 0;  // when maintenance last ended
  uint64_t pause_us_ = 0;       // how long it pauses after that
  uint64_t resolved_workers_ = 0;
  uint64_t failed_resolutions_ = 0;
  bool told_resolved_ = false;  // nodes' logs hold nothing that is still to be installed
  VerbCounters resolution_counters_;
};

}  // namespace rdmacc
