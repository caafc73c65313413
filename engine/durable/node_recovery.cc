// A node whose memory is new gets its rows back, together with all others:
//
//   read       its folder
//   decided    what was prepared has committed or aborted, by all nodes' logs or by what decides
//              it: node 0 asks, the others wait for it (node_decisions.cc)
//   forwarded  it has given the others what their logs may lack of its log's transactions
//   loaded     its rows are in memory, and in a checkpoint of the next generation
//   serving    every node has loaded
//
// From one to the next it goes when all others have come as far as itself. A node that dies in
// between begins anew, and meets others that wait for it where they are.
#include <algorithm>

#include "engine/durable/node_log.h"

namespace rdmacc {
namespace {

constexpr uint64_t kGateUsMax = 1'000'000;
constexpr int kGateTriesMax = 60;
constexpr uint32_t kRowsPerYield = 64;

std::string name_of(NodeId node) { return "node " + std::to_string(node); }

}  // namespace

Result<NodeLog::Peer> NodeLog::ask(NodeId to) {
  Rpc::Bytes reply;
  const Status asked = call(to, kMethodLogState, {}, &reply);
  if (!asked.ok()) {
    if (asked.code() == Code::kUnavailable || asked.code() == Code::kTimeout) {
      return Status(Code::kUnavailable, name_of(to) + " does not answer");
    }
    return Status(Code::kInvalidArgument,
                  name_of(to) + " does not keep its rows on disk (" + asked.message() + ")");
  }
  MessageReader in(reply);
  Peer peer;
  const uint8_t state = in.u8();
  peer.fresh = in.u8() != 0;
  peer.has_content = in.u8() != 0;
  peer.generation = in.u64();
  peer.next_generation = in.u64();
  if (!in.at_end() || state > static_cast<uint8_t>(State::kServing)) {
    return Status(Code::kCorrupt, name_of(to) + " says nonsense of its log");
  }
  peer.state = static_cast<State>(state);
  return peer;
}

// One that serves before this one has read its folder has rows in memory that this one's do not go
// with: what was under way there refers to places here that are no more.
Status NodeLog::have_begin_anew(NodeId to, const Peer& peer) {
  if (fresh_ || peer.generation != generation_) {
    return Status(Code::kInvalidArgument,
                  name_of(to) +
                      " has its rows in memory, and this node has lost its own; its folder " +
                      (fresh_ ? "is empty" : "is of another time"));
  }
  tell(name_of(to) +
       " has its rows in memory, and this node has lost its own: it is told to get "
       "them from disk, too");
  Rpc::Bytes request;
  MessageWriter(request).u64(generation_);
  return call(to, kMethodLogAnew, request, nullptr);
}

Status NodeLog::wait_for(NodeId to, State state) {
  while (to != node()) {
    Result<Peer> peer = ask(to);
    if (!peer.ok()) return peer.status();
    // None serves before all have loaded, but with a memory of before.
    if (peer->state == State::kServing && state < State::kLoaded) {
      RDMACC_RETURN_IF_ERROR(have_begin_anew(to, *peer));
    } else if (peer->state >= state) {
      break;
    }
    worker_.scheduler().sleep_for(kAskEveryUs);
  }
  return Status();
}

// Node 0 is the first that is told and waited for: the claims of all members go with its memory, so
// that none uses what it knew of the others'.
Status NodeLog::wait_for_all(State state) {
  for (NodeId to = 0; to < topology_.nodes; ++to) RDMACC_RETURN_IF_ERROR(wait_for(to, state));
  return Status();
}

// Can the folders be of one time? A node that died when it had its checkpoint already joins the
// generation that the others are on their way to.
Status NodeLog::check_generations() {
  uint64_t least = generation_, most = generation_, next = 0;
  bool any_fresh = fresh_, any_content = has_content_;
  for (NodeId to = 0; to < topology_.nodes; ++to) {
    if (to == node()) continue;
    Result<Peer> peer = ask(to);
    if (!peer.ok()) return peer.status();
    least = std::min(least, peer->generation);
    most = std::max(most, peer->generation);
    next = std::max(next, peer->next_generation);
    any_fresh = any_fresh || peer->fresh;
    any_content = any_content || peer->has_content;
  }
  // All had served before the first table was made.
  if (any_fresh && any_content) {
    return Status(Code::kCorrupt, "the folder of one node is empty, and others have rows");
  }
  if (most > least + 1) {
    return Status(Code::kCorrupt, "the nodes' folders are of different times");
  }
  next_generation_ = least == most ? most + 1 : most;
  if (next != 0) next_generation_ = next;
  return Status();
}

// They are on disk there when this returns.
Status NodeLog::forward() {
  return stored_->for_each_undelivered([this](NodeId to, const RedoWrites& writes) {
    if (to >= topology_.nodes) return Status(Code::kCorrupt, "a write of a node that is not there");
    return send_parts(writes, to, generation_);
  });
}

// A table is there if node 0 has it.
Status NodeLog::take_tables_of_node_0() {
  if (node() == 0) return Status();
  std::map<TableId, ListedTable> tables;
  std::vector<ListedTable> some;
  do {
    Rpc::Bytes request, reply;
    MessageWriter(request).u32(tables.empty() ? kNoTable : tables.rbegin()->first);
    RDMACC_RETURN_IF_ERROR(call(0, kMethodLogTables, request, &reply));
    if (!parse_tables(reply, &some)) return Status(Code::kCorrupt, "node 0's list of tables");
    for (const ListedTable& table : some) tables[table.id] = table;
  } while (some.size() == kListedTablesMax);
  for (const auto& [id, table] : tables) {
    if (!stored_->tables().contains(id)) {
      return Status(Code::kCorrupt, "table " + std::to_string(id) + " of node 0 is not here");
    }
  }
  stored_->keep_tables(tables);
  return Status();
}

// All rows are as old as the world: no transaction is before them.
Status NodeLog::restore() {
  for (const auto& [id, table] : stored_->tables()) {
    RDMACC_RETURN_IF_ERROR(storage_.restore_table(table));
  }
  const uint64_t stamp = (uint64_t{2} << 16) | worker_.id();
  uint64_t rows = 0;
  const Status restored = stored_->for_each_row([&](const RedoRow& row) {
    const LoadedRows load{row.table, stamp, false};
    RDMACC_RETURN_IF_ERROR(storage_.restore_row(load, RowToLoad{row.key, row.row, node()}));
    if (++rows % kRowsPerYield == 0) worker_.scheduler().yield();
    return Status();
  });
  RDMACC_RETURN_IF_ERROR(restored);
  tell("restored " + std::to_string(rows) + " rows of " + std::to_string(stored_->tables().size()) +
       " tables: " + std::to_string(stored_->checkpoint_rows()) + " of a checkpoint, and " +
       std::to_string(stored_->log_writes()) + " writes of the log");
  return Status();
}

// The new log is empty as long as there is no checkpoint in front of it.
Status NodeLog::begin_generation(uint64_t generation) {
  Result<DataFolder::Files> files = folder_.list();
  if (!files.ok()) return files.status();
  CHECK(!files->segments.empty());
  RDMACC_RETURN_IF_ERROR(open_file(generation, files->segments.back() + 1));
  SegmentIdentity own = identity();
  own.kind = SegmentKind::kCheckpoint;
  own.number = files->segments.back() + 1;
  Result<CheckpointWriter> writer = CheckpointWriter::create(folder_, own, *options_.ops);
  if (!writer.ok()) return writer.status();
  RDMACC_RETURN_IF_ERROR(write_rows(*writer));
  RDMACC_RETURN_IF_ERROR(finish(*writer));
  return folder_.remove_older(own.number);
}

// A gate that a transaction has entered before, which has met no table, opens when that is over.
Status NodeLog::close_gate(GateDrain& gate) {
  Status closed;
  for (int i = 0; i < kGateTriesMax; ++i) {
    closed = gate.close({}, kGateUsMax, /*new_gate=*/true);
    if (closed.ok()) return closed;
    worker_.scheduler().sleep_for(kAskEveryUs);
  }
  return closed;
}

Status NodeLog::recover(DoubtTable* doubts) {
  CHECK(stored_ != nullptr && !serving());
  std::optional<GateDrain> gate;
  if (node() == 0) {
    gate.emplace(worker_, topology_);
    RDMACC_RETURN_IF_ERROR(close_gate(*gate));
  }
  state_ = State::kRead;
  RDMACC_RETURN_IF_ERROR(wait_for_all(State::kRead));
  RDMACC_RETURN_IF_ERROR(check_generations());
  RDMACC_RETURN_IF_ERROR(doubts != nullptr ? settle_prepared(*doubts)
                                           : wait_for(0, State::kDecided));
  state_ = State::kDecided;
  RDMACC_RETURN_IF_ERROR(forward());
  RDMACC_RETURN_IF_ERROR(take_tables_of_node_0());
  state_ = State::kForwarded;
  RDMACC_RETURN_IF_ERROR(wait_for_all(State::kForwarded));
  restoring_ = true;
  while (!waiters_.empty()) worker_.scheduler().sleep_for(kAskEveryUs);  // of what was told twice
  RDMACC_RETURN_IF_ERROR(restore());
  RDMACC_RETURN_IF_ERROR(begin_generation(next_generation_));
  state_ = State::kLoaded;
  RDMACC_RETURN_IF_ERROR(wait_for_all(State::kLoaded));
  stored_.reset();
  next_generation_ = 0;
  storage_.set_contents(StorageService::Contents::kOnDisk);
  state_ = State::kServing;
  return gate ? gate->open(false) : Status();
}

}  // namespace rdmacc
