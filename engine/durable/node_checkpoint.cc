// Checkpoints of a node's rows, beside traffic.
#include <algorithm>
#include <atomic>
#include <thread>

#include "engine/durable/node_log.h"

namespace rdmacc {
namespace {

constexpr uint64_t kLookUs = 200'000;
constexpr uint64_t kAfterFailureUs = 5'000'000;
constexpr uint64_t kSyncPauseUs = 2'000;
constexpr size_t kCoveredPerMessage = 32 * 1024;

}  // namespace

void NodeLog::checkpoint_for_ever() {
  Scheduler& scheduler = worker_.scheduler();
  checkpointed_us_ = worker_.endpoint().now_us();
  while (true) {
    scheduler.sleep_for(kLookUs);
    const uint64_t bytes = file_->segment_bytes();
    const bool due = worker_.endpoint().now_us() >= checkpointed_us_ + options_.checkpoint_us;
    if (bytes == 0 || (bytes < options_.checkpoint_bytes && !due)) continue;
    if (resolving_) continue;
    const Status made = checkpoint();
    if (!made.ok()) {
      tell("no checkpoint was made, and the log grows on: " + made.to_string());
      scheduler.sleep_for(kAfterFailureUs);
    }
    checkpointed_us_ = worker_.endpoint().now_us();
  }
}

// What a record that may not be installed everywhere still has to say: writes of this node whose
// lock the transaction holds, and, unless it is being installed already, those that other nodes
// have not said to have. A write whose lock is gone is in memory, and may be out of date; so is one
// that is said to be prepared, where only another copy was told that it has committed.
void NodeLog::carry(const LogRecord& record, bool prepared) {
  Result<RedoWrites> redo = redo_of(record);
  if (!redo.ok()) return;
  RedoWrites kept;
  kept.stamp = redo->stamp;
  kept.lock_ctts = redo->lock_ctts;
  bool all_locked = true;
  size_t next = 0;
  for (const Write& write : record.writes) {
    if (write.kind == WriteKind::kGap) continue;
    const RedoWrite& out = redo->writes[next++];
    if (out.node != node()) continue;
    if (entries_.locked_by(write.header, record.lock_ctts)) {
      kept.writes.push_back(out);
    } else {
      all_locked = false;
    }
  }
  for (const RedoWrite& write : redo->writes) {
    const bool covered = covered_.contains({write.node, redo->lock_ctts});
    if (all_locked && write.node != node() && !covered) kept.writes.push_back(write);
  }
  if (kept.writes.empty()) return;
  if (prepared) {
    append(RedoPrepared{record.gtid, std::move(kept)});
  } else {
    append(kept);
  }
  note_shared(*redo);
}

void NodeLog::carry_over() {
  std::set<std::pair<NodeId, uint64_t>> still_covered;
  entries_.for_each_logged([&](const LogRecord& record, bool prepared) {
    carry(record, prepared);
    for (NodeId by = 0; by < topology_.nodes; ++by) {
      if (covered_.contains({by, record.lock_ctts})) still_covered.emplace(by, record.lock_ctts);
    }
  });
  covered_ = std::move(still_covered);
}

// Others need not keep this node's part of these transactions: their logs go on to name them when
// this one does not any more.
Status NodeLog::tell_covered(size_t count) {
  for (NodeId to = 0; to < topology_.nodes; ++to) {
    RedoCovered covered;
    covered.by = node();
    for (size_t i = 0; i < count; ++i) {
      if (shared_[i].first == to) covered.lock_ctts.push_back(shared_[i].second);
      const bool last = i + 1 == count;
      if (covered.lock_ctts.empty()) continue;
      if (!last && covered.lock_ctts.size() < kCoveredPerMessage) continue;
      Rpc::Bytes request;
      encode(covered, request);
      RDMACC_RETURN_IF_ERROR(call(to, kMethodLogCovered, request, nullptr));
      covered.lock_ctts.clear();
    }
  }
  return Status();
}

// Rows of tables that come meanwhile are in the log.
Status NodeLog::write_rows(CheckpointWriter& writer) {
  std::set<TableId> listed;
  for (const ListedTable& table : storage_.tables()) {
    listed.insert(table.id);
    writer.add(table);
  }
  for (uint64_t page = 0; page < storage_.row_pages(); ++page) {
    storage_.rows_of_page(page, [&](const StoredRow& row) {
      if (listed.contains(row.table)) {
        writer.add(RedoRow{row.table, row.stamp, row.key, row.row});
      }
    });
    RDMACC_RETURN_IF_ERROR(writer.flush_some());
    worker_.scheduler().yield();
  }
  return Status();
}

// A sync of the whole file is no wait for the node's thread.
Status NodeLog::finish(CheckpointWriter& writer) {
  std::atomic<bool> done{false};
  Status status;
  std::thread syncing([&] {
    status = writer.finish();
    done.store(true, std::memory_order_release);
  });
  // Joined on every way out: a coroutine that is unwound ends here as well.
  struct Join {
    std::thread& thread;
    ~Join() { thread.join(); }
  };
  {
    const Join join{syncing};
    while (!done.load(std::memory_order_acquire)) worker_.scheduler().sleep_for(kSyncPauseUs);
  }
  return status;
}

Status NodeLog::checkpoint() {
  const size_t shared = shared_.size();
  SegmentIdentity own = identity();
  own.kind = SegmentKind::kCheckpoint;
  own.number = file_->begin_segment();
  // Nothing yields between the two: what is logged later is in the new segment anyway.
  carry_over();
  const uint64_t carried = append(RedoKind::kCovered, [&] {
    std::vector<std::byte> nothing;
    encode(RedoCovered{node(), {}}, nothing);
    return nothing;
  }());
  Result<CheckpointWriter> writer = CheckpointWriter::create(folder_, own, *options_.ops);
  if (!writer.ok()) return writer.status();
  RDMACC_RETURN_IF_ERROR(write_rows(*writer));
  RDMACC_RETURN_IF_ERROR(wait(carried));
  RDMACC_RETURN_IF_ERROR(tell_covered(shared));
  RDMACC_RETURN_IF_ERROR(finish(*writer));
  shared_.erase(shared_.begin(), shared_.begin() + static_cast<ptrdiff_t>(shared));
  tell("a checkpoint of " + std::to_string(writer->rows()) + " rows");
  return folder_.remove_older(own.number);
}

}  // namespace rdmacc
