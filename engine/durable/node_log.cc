#include "engine/durable/node_log.h"

#include <xxhash.h>

#include <algorithm>

namespace rdmacc {
namespace {

// Of one message between nodes.
constexpr size_t kPartBytes = 512 * 1024;
constexpr uint64_t kAskSilenceUs = 1'000'000;

}  // namespace

Status NodeLog::recovering() {
  return Status(Code::kUnavailable, "the node is getting its rows back from disk");
}

NodeLog::NodeLog(Worker& worker, const Topology& topology, StorageService& storage,
                 const DurableOptions& options, Told told)
    : worker_(worker),
      topology_(topology),
      storage_(storage),
      options_(options),
      told_(std::move(told)),
      layout_(topology),
      entries_(worker.endpoint().local_region(), layout_, node()) {
  CHECK(told_ != nullptr && options_.ops != nullptr && !options_.folder.empty());
}

SegmentIdentity NodeLog::identity() const {
  SegmentIdentity identity;
  identity.node = node();
  identity.nodes = topology_.nodes;
  identity.cluster = XXH3_64bits(options_.cluster.data(), options_.cluster.size());
  identity.generation = generation_;
  return identity;
}

Result<std::unique_ptr<NodeLog>> NodeLog::open(Worker& worker, const Topology& topology,
                                               StorageService& storage,
                                               const DurableOptions& options, Told told) {
  std::unique_ptr<NodeLog> log(new NodeLog(worker, topology, storage, options, std::move(told)));
  Result<DataFolder> folder = DataFolder::open(options.folder);
  if (!folder.ok()) return folder.status();
  log->folder_ = std::move(*folder);
  log->stored_ = std::make_unique<StoredLog>();
  StoredLog& stored = *log->stored_;
  RDMACC_RETURN_IF_ERROR(stored.read(log->folder_, log->identity(),
                                     [&](const std::string& sentence) { log->tell(sentence); }));
  log->has_content_ = stored.has_content();
  log->fresh_ = !log->has_content_ && !stored.has_checkpoint();
  if (!storage.reopened()) {
    RDMACC_RETURN_IF_ERROR(
        log->open_file(std::max<uint64_t>(stored.generation(), 1), stored.last_segment() + 1));
    return log;
  }
  // The rows are in memory, and so are the locks of what is under way.
  if (stored.empty()) {
    return Status(Code::kCorrupt, "the rows of this node are in memory, but not in " +
                                      options.folder + ": it must not go on");
  }
  RDMACC_RETURN_IF_ERROR(log->open_file(stored.generation(), stored.last_segment() + 1));
  log->entries_.adopt([&stored](uint64_t lock_ctts) { return stored.has(lock_ctts); });
  log->shared_ = stored.shared_transactions();
  log->stored_.reset();
  log->state_ = State::kServing;
  return log;
}

Status NodeLog::open_file(uint64_t generation, uint64_t number) {
  file_.reset();
  generation_ = generation;
  LogFile::Options options;
  options.folder = folder_.path();
  options.identity = identity();
  options.identity.number = number;
  options.ops = options_.ops;
  options.on_progress = [this] { worker_.endpoint().wake(); };
  Result<std::unique_ptr<LogFile>> file = LogFile::open(std::move(options));
  if (!file.ok()) return file.status();
  file_ = std::move(*file);
  return Status();
}

Status NodeLog::failure() const {
  if (failed_) return failure_;
  if (begins_anew_) {
    return Status(Code::kCorrupt, "another node has lost its memory: all get their rows from disk",
                  kDiscardMemory);
  }
  if (file_ != nullptr && file_->failed()) return file_->failure();
  return Status();
}

uint64_t NodeLog::append(RedoKind kind, std::span<const std::byte> body) {
  return file_->append(static_cast<uint8_t>(kind), body);
}

uint64_t NodeLog::append(const RedoWrites& writes) {
  std::vector<std::byte> body;
  encode(writes, body);
  return append(RedoKind::kWrites, body);
}

uint64_t NodeLog::append(const RedoPrepared& prepared) {
  std::vector<std::byte> body;
  encode(prepared, body);
  return append(RedoKind::kPrepared, body);
}

Status NodeLog::wait(uint64_t position) {
  if (!failed() && file_->durable() >= position) return Status();
  Waiter waiter{position, {}};
  waiter.done.outstanding = 1;
  waiters_.push_back(&waiter);
  worker_.scheduler().await(waiter.done);
  if (begins_anew_) return recovering();
  return failed() ? failure() : Status();
}

void NodeLog::wake_waiters() {
  if (waiters_.empty()) return;
  const uint64_t durable = file_->durable();
  std::erase_if(waiters_, [&](Waiter* waiter) {
    if (!failed() && waiter->position > durable) return false;
    waiter->done.finish_one();
    return true;
  });
}

void NodeLog::note_shared(const RedoWrites& writes) {
  if (writes.lock_ctts == 0) return;
  NodeId last = node();
  for (const RedoWrite& write : writes.writes) {
    if (write.node == node() || write.node == last) continue;
    last = write.node;
    shared_.emplace_back(last, writes.lock_ctts);
  }
}

// A coordinator's record, which is in its ring: all its writes, those of other nodes too.
Status NodeLog::flush(WorkerId from, std::span<const std::byte> request) {
  MessageReader in(request);
  const uint64_t position = in.u64();
  if (!in.at_end()) return Status(Code::kCorrupt, "request to flush a log");
  if (!serving()) return recovering();
  return log_entry(from, position);
}

// One that another system decides is asked for twice: prepared, and when it has committed.
Status NodeLog::log_entry(WorkerId of, uint64_t position) {
  RingEntries::Entry entry;
  RDMACC_RETURN_IF_ERROR(entries_.read(of, position, entry));
  LogRecord record;
  RDMACC_RETURN_IF_ERROR(decode_log_record(entry.payload, record));
  if (worker_of_ctts(record.lock_ctts) != of || (entry.prepared && record.gtid.null())) {
    return Status(Code::kInvalidArgument, "a log record that is not to be flushed");
  }
  Result<RedoWrites> redo = redo_of(record);
  if (!redo.ok()) return redo.status();
  entries_.note_logged(of, position);
  note_shared(*redo);
  if (entry.prepared) return wait(append(RedoPrepared{record.gtid, std::move(*redo)}));
  return wait(append(*redo));
}

// Node 0 asks for a dead coordinator's: the reply says whether its entry is here.
Status NodeLog::flush_of_dead(WorkerId from, std::span<const std::byte> request,
                              Rpc::Bytes& reply) {
  MessageReader in(request);
  const uint64_t lock_ctts = in.u64();
  if (!in.at_end() || from != topology_.worker_of(0)) return Status(Code::kInvalidArgument);
  if (!serving()) return recovering();
  const WorkerId dead = worker_of_ctts(lock_ctts);
  const std::optional<uint64_t> position = entries_.find(dead, lock_ctts);
  if (position) {
    resolving_ = true;
    RDMACC_RETURN_IF_ERROR(log_entry(dead, *position));
  }
  MessageWriter(reply).u8(position ? 1 : 0);
  return Status();
}

// Of another node: a transaction's writes here, of which this one may have no entry.
Status NodeLog::append_writes(WorkerId from, std::span<const std::byte> request) {
  MessageReader in(request);
  const uint64_t generation = in.u64();
  RedoWrites writes;
  if (!in.ok() || !topology_.is_node_worker(from)) return Status(Code::kInvalidArgument);
  RDMACC_RETURN_IF_ERROR(decode(request.subspan(sizeof(generation)), writes));
  if (generation == 0) {
    if (!serving()) return recovering();
    resolving_ = true;
    for (NodeId to = 0; to < topology_.nodes; ++to) {
      if (to != node()) shared_.emplace_back(to, writes.lock_ctts);
    }
    return wait(append(writes));
  }
  if (generation < generation_ || is_settled()) return Status();  // it has them
  if (generation > generation_) {
    return Status(Code::kCorrupt, "the nodes' folders are of different times");
  }
  CHECK(stored_ != nullptr);
  for (const RedoWrite& write : writes.writes) {
    if (write.node == node()) stored_->take(write, writes.stamp);
  }
  return wait(append(writes));
}

Status NodeLog::cover(WorkerId from, std::span<const std::byte> request) {
  RedoCovered covered;
  if (!topology_.is_node_worker(from)) return Status(Code::kInvalidArgument);
  RDMACC_RETURN_IF_ERROR(decode(request, covered));
  if (!serving()) return recovering();
  for (const uint64_t lock_ctts : covered.lock_ctts) covered_.emplace(covered.by, lock_ctts);
  return wait(append(RedoKind::kCovered, request));
}

// What is on disk is all that was acknowledged; what memory alone has is of transactions under way,
// which refer to places in the memory that is lost.
Status NodeLog::begin_anew(WorkerId from, std::span<const std::byte> request) {
  MessageReader in(request);
  const uint64_t generation = in.u64();
  if (!in.at_end() || !topology_.is_node_worker(from)) return Status(Code::kInvalidArgument);
  if (!serving()) return Status();
  if (generation != generation_) return Status(Code::kInvalidArgument);
  // Should it end before it has given its memory up, it does so when it starts.
  storage_.set_contents(StorageService::Contents::kRestoring);
  begins_anew_ = true;
  wake_waiters();
  return Status();
}

StorageService::ChangeLog NodeLog::change_log() {
  StorageService::ChangeLog log;
  log.created = [this](const ListedTable& table) {
    std::vector<std::byte> body;
    encode(table, body);
    return wait(append(RedoKind::kCreated, body));
  };
  log.dropped = [this](TableId table) {
    std::vector<std::byte> body;
    encode_dropped(table, body);
    return wait(append(RedoKind::kDropped, body));
  };
  log.loaded = [this](const LoadedRows& load, std::span<const RowToLoad> rows) {
    RedoWrites writes;
    writes.stamp = load.stamp;
    for (const RowToLoad& row : rows) {
      writes.writes.push_back({node(), load.table, false, row.key, row.row});
    }
    return wait(append(writes));
  };
  return log;
}

// A node that dies while another one gets its rows back begins anew, and is waited for.
Status NodeLog::call(NodeId to, MethodId method, const Rpc::Bytes& request, Rpc::Bytes* reply) {
  const uint64_t deadline_us = worker_.endpoint().now_us() + options_.peers_us_max;
  while (true) {
    Rpc::Call call;
    call.to = topology_.worker_of(to);
    call.method = method;
    call.request = request;
    if (method == kMethodLogState) call.silence_us_max = kAskSilenceUs;
    const Status status = worker_.rpc().call_one(call, counters_);
    if (status.ok() && reply != nullptr) *reply = std::move(call.reply);
    const bool away = status.code() == Code::kUnavailable || status.code() == Code::kTimeout;
    if (!away || serving() || worker_.endpoint().now_us() > deadline_us) return status;
    worker_.scheduler().sleep_for(kAskEveryUs);
  }
}

// A record that is longer than a message goes in several: each is worth something by itself, and
// the whole of it stays where it is until all have arrived.
Status NodeLog::send_parts(const RedoWrites& writes, NodeId to, uint64_t generation) {
  for (size_t from = 0; from < writes.writes.size();) {
    RedoWrites part;
    part.stamp = writes.stamp;
    part.lock_ctts = writes.lock_ctts;
    for (size_t bytes = 0; from < writes.writes.size() && bytes < kPartBytes; ++from) {
      const RedoWrite& write = writes.writes[from];
      if (write.node != to) continue;
      bytes += write.key.size() + write.row.size();
      part.writes.push_back(write);
    }
    if (part.writes.empty()) break;
    Rpc::Bytes request;
    MessageWriter(request).u64(generation);
    encode(part, request);
    RDMACC_RETURN_IF_ERROR(call(to, kMethodAppendToLog, request, nullptr));
  }
  return Status();
}

Result<std::set<NodeId>> NodeLog::flush_copies(uint64_t lock_ctts) {
  std::set<NodeId> have;
  for (NodeId to = 0; to < topology_.nodes; ++to) {
    Rpc::Bytes request, reply;
    MessageWriter(request).u64(lock_ctts);
    RDMACC_RETURN_IF_ERROR(call(to, kMethodFlushOfDead, request, &reply));
    MessageReader in(reply);
    if (in.u8() != 0) have.insert(to);
  }
  return have;
}

Status NodeLog::make_durable(const LogRecord& record, VerbCounters& counters) {
  CHECK(serving());
  Result<RedoWrites> redo = redo_of(record);
  if (!redo.ok()) return redo.status();
  std::set<NodeId> nodes;
  for (const RedoWrite& write : redo->writes) nodes.insert(write.node);
  // The whole of it is on one disk before a part of it alone is on another.
  Result<std::set<NodeId>> have = flush_copies(record.lock_ctts);
  if (!have.ok()) return have.status();
  if (have->empty()) return Status(Code::kUnavailable, "no node has the log of a dead worker");
  for (const NodeId to : nodes) {
    if (!have->contains(to)) RDMACC_RETURN_IF_ERROR(send_parts(*redo, to, 0));
  }
  counters.add(counters_);
  counters_ = {};
  return Status();
}

Status NodeLog::resolved(VerbCounters& counters) {
  Status status;
  for (NodeId to = 0; to < topology_.nodes; ++to) {
    const Status told = call(to, kMethodLogResolved, {}, nullptr);
    if (status.ok()) status = told;
  }
  counters.add(counters_);
  counters_ = {};
  return status;
}

void NodeLog::serve(const StorageService::Guard& guard) {
  worker_.rpc().handle(kMethodFlushLog,
                       guard([this](WorkerId from, std::span<const std::byte> request,
                                    Rpc::Bytes&) { return flush(from, request); }));
  worker_.rpc().handle(kMethodFlushOfDead,
                       [this](WorkerId from, std::span<const std::byte> request,
                              Rpc::Bytes& reply) { return flush_of_dead(from, request, reply); });
  worker_.rpc().handle(kMethodAppendToLog,
                       [this](WorkerId from, std::span<const std::byte> request, Rpc::Bytes&) {
                         return append_writes(from, request);
                       });
  worker_.rpc().handle(kMethodLogCovered, [this](WorkerId from, std::span<const std::byte> request,
                                                 Rpc::Bytes&) { return cover(from, request); });
  worker_.rpc().handle(kMethodLogResolved,
                       [this](WorkerId from, std::span<const std::byte>, Rpc::Bytes&) {
                         if (topology_.is_node_worker(from)) resolving_ = false;
                         return Status();
                       });
  worker_.rpc().handle(kMethodLogAnew, [this](WorkerId from, std::span<const std::byte> request,
                                              Rpc::Bytes&) { return begin_anew(from, request); });
  worker_.rpc().handle(kMethodLogState,
                       [this](WorkerId, std::span<const std::byte>, Rpc::Bytes& reply) {
                         MessageWriter out(reply);
                         out.u8(static_cast<uint8_t>(state_));
                         out.u8(fresh_ ? 1 : 0);
                         out.u8(has_content_ ? 1 : 0);
                         out.u64(generation_);
                         out.u64(next_generation_);
                         return Status();
                       });
  worker_.rpc().handle(
      kMethodLogTables, [this](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
        MessageReader in(request);
        const TableId after = in.u32();
        if (!in.at_end()) return Status(Code::kCorrupt, "request for tables");
        if (stored_ == nullptr || state_ < State::kRead) return recovering();
        std::vector<ListedTable> tables;
        for (auto at = stored_->tables().upper_bound(after);
             at != stored_->tables().end() && tables.size() < kListedTablesMax; ++at) {
          tables.push_back(at->second);
        }
        write_tables(tables, reply);
        return Status();
      });
  serve_decisions();
  storage_.set_change_log(change_log());
  worker_.scheduler().add_after_step([this] { wake_waiters(); });
}

void NodeLog::run(DoubtTable* doubts, const std::function<void()>& recovered) {
  CHECK((doubts != nullptr) == (node() == 0));
  if (!serving()) {
    failure_ = recover(doubts);
    failed_ = !failure_.ok();
    if (failed_) return;
  }
  recovered();
  checkpoint_for_ever();
}

}  // namespace rdmacc
