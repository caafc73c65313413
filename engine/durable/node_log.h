#pragma once
#include <map>
#include <optional>
#include <set>

#include "engine/cluster/gate_drain.h"
#include "engine/durable/log_file.h"
#include "engine/durable/ring_entries.h"
#include "engine/durable/stored_log.h"
#include "engine/log/caller_fence.h"
#include "engine/log/in_doubt.h"
#include "engine/storage/wire/storage_messages.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

struct DurableOptions {
  std::string folder;   // of this node alone
  std::string cluster;  // its name: files of another one are refused
  // When a checkpoint is made: so many bytes of log since the last one, or after a time if there
  // were any.
  uint64_t checkpoint_bytes = 256ull << 20;
  uint64_t checkpoint_us = 300'000'000;
  // How long a recovering node waits for one that does not answer.
  uint64_t peers_us_max = 60'000'000;
  FileOps* ops = &FileOps::posix();
};

// In the detail of a kCorrupt, of failure() too: the node's memory is to be discarded, and the node
// opened again, since its rows are on disk and not, or not all, in memory beside the others'.
constexpr uint16_t kDiscardMemory = 1;

// The log of a node on disk, and what it needs to have its rows back: README.md says how. Thread 0
// of the node alone.
//
//  D1  A transaction's locks are held until its record is on disk on every node that it writes on;
//      so what others read of it is on disk, and any one copy commits it.
//  D2  What is asked for durability is answered when it is on disk, or never (LogFile's L2).
//  D3  A row that is on disk in a checkpoint alone was installed when that began; so a record that
//      a checkpoint leaves out is installed on this node, and on disk on the others.
//  D4  A transaction that another system decides has its writes on disk as prepared on every node
//      that it writes on before that system may say that it commits, and D1 as others have before
//      anything of it is installed: whatever memory is lost in between, its end can be asked for.
//  D5  No transaction runs before every node has its rows, and has a checkpoint of them.
class NodeLog {
 public:
  using Told = std::function<void(const std::string&)>;

  // Takes the folder. Reads it unless the region was kept (then the log goes on).
  static Result<std::unique_ptr<NodeLog>> open(Worker& worker, const Topology& topology,
                                               StorageService& storage,
                                               const DurableOptions& options, Told told);
  NodeLog(const NodeLog&) = delete;
  NodeLog& operator=(const NodeLog&) = delete;

  // Registers its methods. `guard`: as StorageService has it.
  void serve(const StorageService::Guard& guard);
  // Its life, in a coroutine: recovery, then a checkpoint now and then. Calls `recovered` between.
  // `doubts`: of node 0, nullptr on others.
  void run(DoubtTable* doubts, const std::function<void()>& recovered);
  bool serving() const { return state_ == State::kServing; }
  // Not ok: the node has to end.
  Status failure() const;
  bool failed() const { return failed_ || begins_anew_ || (file_ != nullptr && file_->failed()); }

  // ---- Of node 0, that finishes what dead coordinators have left.
  // The record is on disk on all nodes that it writes on when this returns.
  Status make_durable(const LogRecord& record, VerbCounters& counters);
  // How a prepared transaction ends is on disk on all nodes when this returns.
  Status log_decision(uint64_t lock_ctts, bool committed);
  // What was made durable is installed, or will be made durable again.
  Status resolved(VerbCounters& counters);

 private:
  static constexpr uint64_t kAskEveryUs = 20'000;  // another node, how far it is
  enum class State : uint8_t { kReading, kRead, kDecided, kForwarded, kLoaded, kServing };
  struct Peer {
    State state = State::kReading;
    bool fresh = false;
    bool has_content = false;
    uint64_t generation = 0;
    uint64_t next_generation = 0;  // that it gets its rows back into; 0: it has not said yet
  };
  struct Waiter {
    uint64_t position;
    Completion done;
  };

  NodeLog(Worker& worker, const Topology& topology, StorageService& storage,
          const DurableOptions& options, Told told);

  NodeId node() const { return static_cast<NodeId>(worker_.id() / topology_.threads_per_node); }
  SegmentIdentity identity() const;
  Status open_file(uint64_t generation, uint64_t number);
  void tell(const std::string& sentence) const { told_("log on disk: " + sentence); }

  // node_log.cc
  static Status recovering();
  uint64_t append(RedoKind kind, std::span<const std::byte> body);
  uint64_t append(const RedoWrites& writes);
  uint64_t append(const RedoPrepared& prepared);
  Status wait(uint64_t position);
  void wake_waiters();
  void note_shared(const RedoWrites& writes);
  Status flush(WorkerId from, std::span<const std::byte> request);
  Status flush_of_dead(WorkerId from, std::span<const std::byte> request, Rpc::Bytes& reply);
  Status log_entry(WorkerId of, uint64_t position);
  // In a recovery: it has all that others may tell it.
  bool is_settled() const { return restoring_ || state_ >= State::kLoaded; }
  Status append_writes(WorkerId from, std::span<const std::byte> request);
  Status cover(WorkerId from, std::span<const std::byte> request);
  Status begin_anew(WorkerId from, std::span<const std::byte> request);
  StorageService::ChangeLog change_log();
  Status call(NodeId to, MethodId method, const Rpc::Bytes& request, Rpc::Bytes* reply);
  // Has all nodes flush the entry of a transaction of which they have a committed copy in memory;
  // which those are.
  Result<std::set<NodeId>> flush_copies(uint64_t lock_ctts);
  // Those of `to` among them, in requests of a bounded size.
  Status send_parts(const RedoWrites& writes, NodeId to, uint64_t generation);

  // node_checkpoint.cc
  void checkpoint_for_ever();
  Status checkpoint();
  Status write_rows(CheckpointWriter& writer);
  Status finish(CheckpointWriter& writer);
  void carry_over();
  void carry(const LogRecord& record, bool prepared);
  Status tell_covered(size_t count);

  // node_decisions.cc
  void serve_decisions();
  Status take_decision(WorkerId from, std::span<const std::byte> request);
  Status list_prepared(std::span<const std::byte> request, Rpc::Bytes& reply);
  Status list_outcomes(std::span<const std::byte> request, Rpc::Bytes& reply);
  Status ask_for_prepared(NodeId of, std::map<uint64_t, InDoubt>& found);
  Status ask_for_outcomes(NodeId of, std::map<uint64_t, InDoubt>& open);
  Status settle_prepared(DoubtTable& doubts);

  // node_recovery.cc
  Status recover(DoubtTable* doubts);
  Status close_gate(GateDrain& gate);
  Result<Peer> ask(NodeId to);
  Status wait_for(NodeId to, State state);
  Status wait_for_all(State state);
  Status have_begin_anew(NodeId to, const Peer& peer);
  Status check_generations();
  Status forward();
  Status take_tables_of_node_0();
  Status restore();
  Status begin_generation(uint64_t generation);

  Worker& worker_;
  const Topology topology_;
  StorageService& storage_;
  const DurableOptions options_;
  const Told told_;
  const RegionLayout layout_;
  DataFolder folder_;
  RingEntries entries_;
  std::unique_ptr<StoredLog> stored_;  // while it recovers
  std::unique_ptr<LogFile> file_;
  State state_ = State::kReading;
  bool fresh_ = false;        // the folder is of a node that has never served
  bool has_content_ = false;  // of it: tables, or writes
  bool restoring_ = false;    // what its log has is settled
  uint64_t generation_ = 0;
  uint64_t next_generation_ = 0;  // while it recovers
  std::vector<Waiter*> waiters_;
  // Transactions in the log since the last checkpoint that wrote on another node, too.
  std::vector<std::pair<NodeId, uint64_t>> shared_;
  // And those of other nodes' that these have on disk.
  std::set<std::pair<NodeId, uint64_t>> covered_;
  bool resolving_ = false;  // node 0 has had records made durable that it is about to install
  uint64_t checkpointed_us_ = 0;
  bool failed_ = false;
  bool begins_anew_ = false;  // a node has lost its memory
  Status failure_;
  VerbCounters counters_;
};

}  // namespace rdmacc
