#include "engine/node/node_thread.h"

#include <algorithm>

#include "engine/log/resolve.h"
#include "engine/protocols/registry.h"
#include "engine/txn/stages/install.h"

namespace rdmacc {
namespace {

// A resolution that cannot be made is tried ten times a second, and told about once a minute.
constexpr uint64_t kFailuresPerLine = 600;

}  // namespace

NodeThread::NodeThread(Fabric& fabric, NodeId node, uint16_t thread, const NodeOptions& options,
                       std::unique_ptr<Endpoint> endpoint)
    : fabric_(fabric),
      node_(node),
      thread_(thread),
      options_(options),
      worker_(std::move(endpoint)) {}

// Coroutines refer to the services, so they go first.
NodeThread::~NodeThread() { worker_.scheduler().unwind(); }

Result<std::unique_ptr<NodeThread>> NodeThread::open(Fabric& fabric, NodeId node, uint16_t thread,
                                                     const NodeOptions& options) {
  const Topology& topology = fabric.topology();
  CHECK(node < topology.nodes && thread < topology.threads_per_node);
  Result<std::unique_ptr<Endpoint>> endpoint = fabric.join_as_node(node, thread);
  if (!endpoint.ok()) return endpoint.status();
  std::unique_ptr<NodeThread> opened(
      new NodeThread(fabric, node, thread, options, std::move(*endpoint)));
  if (thread == 0) {
    Result<std::unique_ptr<StorageService>> storage =
        StorageService::open(opened->worker_, topology);
    if (!storage.ok()) return storage.status();
    opened->storage_ = std::move(*storage);
    opened->storage_->observe(options.structure);
    opened->storage_->keep_versions_for(options.keep_versions_us);
    opened->storage_->recycle_every(options.recycle_every_us);
    RDMACC_RETURN_IF_ERROR(opened->open_log());
  }
  opened->serve();
  return opened;
}

// Memory and disk must go together: rows of a memory that had no log are on no disk.
Status NodeThread::open_log() {
  using Contents = StorageService::Contents;
  const Contents contents = storage_->contents();
  if (!options_.durable) {
    if (contents == Contents::kMemory) return Status();
    return Status(Code::kInvalidArgument,
                  "the memory of this node is of one with durability = disk");
  }
  if (storage_->reopened() && contents == Contents::kMemory) {
    return Status(
        Code::kInvalidArgument,
        "the memory of this node is of one with durability = memory, whose rows are on no "
        "disk. To give them up, start it with --from-disk");
  }
  if (storage_->reopened() && contents != Contents::kOnDisk) {
    return Status(Code::kCorrupt, "the memory of this node has not all of its rows",
                  kDiscardMemory);
  }
  if (!storage_->reopened()) storage_->set_contents(Contents::kRestoring);
  Result<std::unique_ptr<NodeLog>> log =
      NodeLog::open(worker_, fabric_.topology(), *storage_, *options_.durable,
                    [this](const std::string& sentence) { this->log(sentence); });
  if (!log.ok()) return log.status();
  node_log_ = std::move(*log);
  return Status();
}

// Nothing is served that a transaction could begin with before the rows are there.
StorageService::Guard NodeThread::guard() {
  return [this](Rpc::Handler handler) {
    Rpc::Handler guarded = fence_->guard(std::move(handler));
    if (node_log_ == nullptr) return guarded;
    return Rpc::Handler([this, guarded = std::move(guarded)](
                            WorkerId from, std::span<const std::byte> request, Rpc::Bytes& reply) {
      if (serving()) return guarded(from, request, reply);
      return Status(Code::kUnavailable, "the node is getting its rows back from disk");
    });
  };
}

void NodeThread::serve() {
  CHECK(stages_ == nullptr && (storage_ != nullptr) == (thread_ == 0));
  fence_ = std::make_unique<CallerFence>(worker_, fabric_.topology());
  stages_ =
      std::make_unique<StageServer>(worker_, fabric_.topology(), *fence_, storage_.get(),
                                    options_.rules_of != nullptr ? options_.rules_of : &rules_of);
  if (options_.durable) stages_->log_to_disk();
  if (thread_ != 0) {
    serve_fence(worker_, *fence_);
    return;
  }
  storage_->serve(guard());
  serve_resolution(worker_, *storage_, *fence_);
  serve_reader_count_sweep(worker_, *storage_, *fence_);
  SequencerOptions order = options_.order;
  if (options_.durable) order.refuse = "protocol CALVIN does not write to nodes' disks";
  sequencer_ = std::make_unique<Sequencer>(worker_, fabric_.topology(), *storage_, *fence_, order);
  sequencer_->serve();
  storage_->set_order_hold({[this](uint64_t deadline_us) { return sequencer_->pause(deadline_us); },
                            [this] { sequencer_->resume(); }});
  log(std::string(storage_->reopened() ? "reopened" : "formatted") + " its region");
  worker_.scheduler().add_after_step([this] { maintain_when_pending(); });
  if (node_ == 0) serve_node_0();
  if (node_log_ == nullptr) return;
  node_log_->serve(guard());
  CHECK(worker_.scheduler().spawn([this] {
    node_log_->run(doubts_.get(), [this] {
      if (node_ == 0) CHECK(worker_.scheduler().spawn([this] { resolve_for_ever(); }));
    });
  }));
}

void NodeThread::serve_node_0() {
  sweeper_ =
      std::make_unique<ReaderCountSweeper>(worker_, fabric_.topology(), options_.drain_us_max);
  doubts_ = std::make_unique<DoubtTable>(worker_, fabric_.topology());
  doubts_->serve([this] {
    const std::vector<WorkerId> departed = fabric_.departed();
    const auto left = std::count_if(departed.begin(), departed.end(),
                                    [this](WorkerId dead) { return !left_alone(dead); });
    return static_cast<size_t>(left) + (serving() ? 0 : 1);  // logs may name more
  });
  // With rows on disk they have to be there first.
  if (node_log_ != nullptr) {
    doubts_->log_decisions([this](uint64_t lock_ctts, bool committed) {
      return node_log_->log_decision(lock_ctts, committed);
    });
    return;
  }
  CHECK(worker_.scheduler().spawn([this] { resolve_for_ever(); }));
}

// What makes maintenance pending is a request, or a transaction that ended; both are a step. A
// node that sleeps is woken for it at the latest when its fabric's longest wait is over.
void NodeThread::maintain_when_pending() {
  if (maintaining_ || !storage_->maintenance_pending()) return;
  maintaining_ = worker_.scheduler().spawn([this] { maintain(); });
}

void NodeThread::maintain() {
  CHECK(maintaining_ && sequencer_ != nullptr);
  worker_.scheduler().sleep_until(maintained_us_ + std::max(pause_us_, options_.maintain_every_us));
  sequencer_->pause();
  const bool got_on = storage_->maintain();
  sequencer_->resume();
  if (storage_->out_of_eras() && !told_out_of_eras_) {
    told_out_of_eras_ = true;
    log("no empty page serves another size any more until the cluster is started anew");
  }
  pause_us_ = got_on ? options_.maintain_every_us
                     : std::min(2 * std::max(pause_us_, options_.maintain_every_us),
                                options_.maintain_every_us_max);
  maintained_us_ = worker_.endpoint().now_us();
  maintaining_ = false;
}

void NodeThread::resolve_for_ever() {
  while (true) {
    worker_.scheduler().sleep_for(options_.resolve_every_us);
    resolve_departed();
    sweep_reader_counts();
  }
}

// Nothing is to be done for it now: its reader counts are to be swept, or its outcome has to be
// decided.
bool NodeThread::left_alone(WorkerId dead) const {
  return doubts_->waits(dead) ||
         std::find(unswept_.begin(), unswept_.end(), dead) != unswept_.end();
}

// What a dead coordinator had logged in memory alone is on disk before others see it.
InstallCommitted NodeThread::installer() {
  InstallCommitted install = make_installer(worker_, fabric_.topology(), rules_of);
  if (node_log_ == nullptr) return install;
  return [this, install = std::move(install)](const LogRecord& record, VerbCounters& counters) {
    told_resolved_ = false;
    RDMACC_RETURN_IF_ERROR(node_log_->make_durable(record, counters));
    return install(record, counters);
  };
}

// `all`: nothing that was made durable is still to be installed, so that checkpoints may go on.
void NodeThread::end_resolution(bool all) {
  if (node_log_ == nullptr || told_resolved_ || !all) return;
  told_resolved_ = node_log_->resolved(resolution_counters_).ok();
}

void NodeThread::resolve_departed() {
  CHECK(node_ == 0 && doubts_ != nullptr);
  bool all = true;
  for (const WorkerId dead : fabric_.departed()) {
    if (left_alone(dead)) continue;
    doubts_->begin_pass(dead);
    const Result<ResolveReport> report =
        resolve_worker(worker_, fabric_.topology(), dead, installer(), resolution_counters_);
    if (!report.ok()) {
      all = false;
      // A node is down, perhaps for long; the next pass tries again.
      doubts_->failed_pass(dead);
      log_failure("cannot resolve worker " + std::to_string(dead) +
                  " yet: " + report.status().to_string());
      continue;
    }
    const ResolveReport& done = report.value();
    log_resolved(dead, done);
    doubts_->end_pass(dead, done.in_doubt);
    if (!done.in_doubt.empty()) continue;
    if (done.left_reader_counts) {
      unswept_.push_back(dead);
    } else {
      release(dead);
    }
  }
  end_resolution(all);
}

void NodeThread::log_resolved(WorkerId dead, const ResolveReport& done) const {
  std::string doubts;
  if (!done.in_doubt.empty()) {
    doubts = ", " + std::to_string(done.in_doubt.size()) + " transactions in doubt";
  }
  log("worker " + std::to_string(dead) + " died: " + std::to_string(done.committed) +
      " committed transactions in its log, " + std::to_string(done.writes_installed) +
      " writes installed, " + std::to_string(done.locks_released) + " locks released, " +
      std::to_string(done.slots_discarded) + " slots freed" + doubts);
}

void NodeThread::sweep_reader_counts() {
  CHECK(sweeper_ != nullptr);
  const uint64_t before = sweeper_->reader_counts_cleared();
  const Result<bool> swept = sweeper_->sweep_if_needed(unswept_, resolution_counters_);
  if (!swept.ok()) {
    log_failure("cannot sweep shared locks yet: " + swept.status().to_string());
    return;
  }
  if (!swept.value()) return;
  log("swept " + std::to_string(sweeper_->reader_counts_cleared() - before) + " shared locks");
  const RegionLayout layout(fabric_.topology());
  // A line that cannot be cleared now is by the next sweep.
  std::erase_if(unswept_, [&](WorkerId dead) {
    if (!Gate::clear_line(worker_, layout, dead, resolution_counters_).ok()) return false;
    release(dead);
    return true;
  });
}

void NodeThread::release(WorkerId resolved) {
  CHECK(!fabric_.topology().is_node_worker(resolved) && !doubts_->waits(resolved));
  fabric_.release(resolved);
  ++resolved_workers_;
}

void NodeThread::log_failure(const std::string& sentence) {
  if (failed_resolutions_++ % kFailuresPerLine == 0) log(sentence);
}

void NodeThread::log(const std::string& sentence) const {
  if (options_.log) options_.log("node " + std::to_string(node_) + ": " + sentence);
}

}  // namespace rdmacc
