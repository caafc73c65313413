#include "engine/durable/stored_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace rdmacc {
namespace {

Status damaged(const std::string& what) {
  return Status(Code::kCorrupt,
                what +
                    "; rows are missing, so the node does not start. Restore the folders of all "
                    "nodes from one copy that was made while none ran");
}

Status cut(const std::string& path, uint64_t bytes) {
  Result<OpenFile> file = open_file(path, O_WRONLY);
  if (!file.ok()) return file.status();
  if (ftruncate(file->fd(), static_cast<off_t>(bytes)) != 0 || fdatasync(file->fd()) != 0) {
    return Status::from_errno("cutting off what a log ends with");
  }
  return Status();
}

// A block that can be read may be in the kernel's memory alone: that of a sync which failed, or
// which a process did not live to make. It is written again, before another file may follow it.
Status settle(const std::string& path, const SegmentContent& content) {
  if (content.last_block == 0) return Status();
  Result<OpenFile> file = open_file(path, O_RDWR);
  if (!file.ok()) return file.status();
  std::string block(content.bytes - content.last_block, '\0');
  const auto at = static_cast<off_t>(content.last_block);
  const auto bytes = static_cast<ssize_t>(block.size());
  if (pread(file->fd(), block.data(), block.size(), at) != bytes ||
      pwrite(file->fd(), block.data(), block.size(), at) != bytes || fdatasync(file->fd()) != 0) {
    return Status::from_errno("writing the end of a log again");
  }
  return Status();
}

}  // namespace

Status StoredLog::check_identity(const std::string& path, const SegmentIdentity& found,
                                 SegmentKind kind) const {
  if (found.kind != kind) return damaged(path + " is another kind of file");
  if (found.node != own_.node || found.nodes != own_.nodes || found.cluster != own_.cluster) {
    return Status(Code::kInvalidArgument,
                  path + " belongs to node " + std::to_string(found.node) + " of " +
                      std::to_string(found.nodes) +
                      (found.cluster != own_.cluster ? " of another cluster" : ""));
  }
  return Status();
}

Status StoredLog::read(const DataFolder& folder, const SegmentIdentity& own,
                       const std::function<void(const std::string&)>& told) {
  folder_ = &folder;
  own_ = own;
  Result<DataFolder::Files> files = folder.list();
  if (!files.ok()) return files.status();
  if (!files->checkpoints.empty()) checkpoint_ = files->checkpoints.back();
  RDMACC_RETURN_IF_ERROR(read_checkpoint_tables());
  std::vector<uint64_t> segments;
  for (const uint64_t number : files->segments) {
    if (number >= checkpoint_) segments.push_back(number);
  }
  uint64_t expected = checkpoint_ != 0 ? checkpoint_ : 1;
  if (checkpoint_ != 0 && segments.empty()) {
    return damaged(segment_path(folder.path(), checkpoint_) + " is missing");
  }
  for (const uint64_t number : segments) {
    if (number != expected) {
      return damaged(segment_path(folder.path(), expected) + " is missing");
    }
    last_segment_ = number;
    RDMACC_RETURN_IF_ERROR(read_log_segment(number, number == segments.back(), told));
    ++expected;
  }
  settle_prepared();
  return Status();
}

// When all has been read, since a checkpoint may have carried one over behind its end. Its writes
// may not all be among those that came one by one from another node.
void StoredLog::settle_prepared() {
  std::vector<std::pair<uint64_t, bool>> known;
  for (const auto& [lock_ctts, record] : prepared_) {
    const std::optional<bool> ended = committed(lock_ctts);
    if (ended) known.emplace_back(lock_ctts, *ended);
  }
  for (const auto& [lock_ctts, ended] : known) decide(lock_ctts, ended);
}

Status StoredLog::read_checkpoint_tables() {
  if (checkpoint_ == 0) return Status();
  const std::string path = folder_->checkpoint_path(checkpoint_);
  bool whole = false;
  const auto visit = [&](uint8_t kind, std::span<const std::byte> body) {
    if (whole) return Status(Code::kCorrupt, "records follow the last one");
    if (kind == static_cast<uint8_t>(RedoKind::kRow)) {
      ++checkpoint_rows_;
      return Status();
    }
    if (kind == static_cast<uint8_t>(RedoKind::kEnd)) {
      RedoEnd end;
      RDMACC_RETURN_IF_ERROR(decode(body, end));
      whole = end.rows == checkpoint_rows_ && end.tables == tables_.size();
      return whole ? Status() : Status(Code::kCorrupt, "rows or tables are missing");
    }
    ListedTable table;
    RDMACC_RETURN_IF_ERROR(decode(body, table));
    tables_[table.id] = table;
    return Status();
  };
  Result<SegmentContent> content = read_segment(path, visit);
  if (!content.ok()) return damaged(content.status().message());
  RDMACC_RETURN_IF_ERROR(check_identity(path, content->identity, SegmentKind::kCheckpoint));
  if (!whole || content->torn_bytes > 0) return damaged(path + " is not whole");
  generation_ = content->identity.generation;
  return Status();
}

Status StoredLog::read_log_segment(uint64_t number, bool last,
                                   const std::function<void(const std::string&)>& told) {
  const std::string path = segment_path(folder_->path(), number);
  Result<SegmentContent> content = read_segment(
      path,
      [this](uint8_t kind, std::span<const std::byte> body) { return take_record(kind, body); });
  if (!content.ok()) return damaged(content.status().message());
  if (content->torn_bytes > 0 && !last) return damaged(path + " is cut, and others follow it");
  if (content->bytes == 0) {  // it was being made
    if (unlink(path.c_str()) != 0) return Status::from_errno("removing a log without a header");
    --last_segment_;
    told(path + " had no header yet, and is removed");
    return Status();
  }
  RDMACC_RETURN_IF_ERROR(check_identity(path, content->identity, SegmentKind::kLog));
  if (generation_ == 0) generation_ = content->identity.generation;
  if (last && content->identity.generation > generation_ &&
      content->bytes == sizeof(SegmentHeader)) {  // of a recovery that did not come to its end
    if (unlink(path.c_str()) != 0) return Status::from_errno("removing an empty log");
    --last_segment_;
    return Status();
  }
  if (content->identity.generation != generation_) {
    return damaged(path + " is of another recovery than what is before it");
  }
  if (content->torn_bytes == 0) return last ? settle(path, *content) : Status();
  told(path + " ended with a block that was not whole: " + std::to_string(content->torn_bytes) +
       " bytes behind byte " + std::to_string(content->bytes) +
       " are cut off; no transaction in it had been acknowledged");
  RDMACC_RETURN_IF_ERROR(cut(path, content->bytes));
  return settle(path, *content);
}

Status StoredLog::take_record(uint8_t kind, std::span<const std::byte> body) {
  switch (static_cast<RedoKind>(kind)) {
    case RedoKind::kWrites: {
      RedoWrites writes;
      RDMACC_RETURN_IF_ERROR(decode(body, writes));
      take(writes);
      if (writes.lock_ctts != 0) transactions_.insert(writes.lock_ctts);
      return Status();
    }
    case RedoKind::kPrepared:
      return take_prepared(body);
    case RedoKind::kDecided: {
      RedoDecided decided;
      RDMACC_RETURN_IF_ERROR(decode(body, decided));
      decided_[decided.lock_ctts] = decided.committed;
      return Status();
    }
    case RedoKind::kCovered: {
      RedoCovered covered;
      RDMACC_RETURN_IF_ERROR(decode(body, covered));
      for (const uint64_t lock_ctts : covered.lock_ctts) covered_.emplace(covered.by, lock_ctts);
      return Status();
    }
    case RedoKind::kCreated: {
      ListedTable table;
      RDMACC_RETURN_IF_ERROR(decode(body, table));
      tables_[table.id] = table;
      return Status();
    }
    case RedoKind::kDropped: {
      TableId table = kNoTable;
      RDMACC_RETURN_IF_ERROR(decode_dropped(body, table));
      tables_.erase(table);
      newest_.erase(table);
      return Status();
    }
    case RedoKind::kRow:
    case RedoKind::kEnd:
      break;
  }
  return Status(Code::kCorrupt, "a record of an unknown kind");
}

// A checkpoint may have carried it over: then the later record lacks what others have by
// themselves.
Status StoredLog::take_prepared(std::span<const std::byte> body) {
  RedoPrepared prepared;
  RDMACC_RETURN_IF_ERROR(decode(body, prepared));
  prepared_[prepared.writes.lock_ctts].assign(body.begin(), body.end());
  return Status();
}

std::vector<InDoubt> StoredLog::prepared(uint64_t after, size_t most) const {
  std::vector<InDoubt> found;
  for (auto at = prepared_.upper_bound(after); at != prepared_.end() && found.size() < most; ++at) {
    RedoPrepared prepared;
    CHECK(decode(at->second, prepared).ok());  // it was when it was read
    InDoubt& doubt = found.emplace_back();
    doubt.gtid = prepared.gtid;
    doubt.worker = worker_of_ctts(at->first);
    doubt.node = own_.node;
    doubt.lock_ctts = at->first;
    doubt.stamp = prepared.writes.stamp;
  }
  return found;
}

std::optional<bool> StoredLog::committed(uint64_t lock_ctts) const {
  if (transactions_.contains(lock_ctts)) return true;
  const auto decided = decided_.find(lock_ctts);
  return decided != decided_.end() ? std::optional(decided->second) : std::nullopt;
}

void StoredLog::decide(uint64_t lock_ctts, bool committed) {
  const auto found = prepared_.find(lock_ctts);
  if (found == prepared_.end()) return;
  const std::vector<std::byte> record = std::move(found->second);
  prepared_.erase(found);
  if (!committed) return;
  RedoPrepared prepared;
  CHECK(decode(record, prepared).ok());
  take(prepared.writes);
  transactions_.insert(lock_ctts);
}

void StoredLog::take(const RedoWrites& writes) {
  bool shared = false;
  for (const RedoWrite& write : writes.writes) {
    if (write.node == own_.node) {
      take(write, writes.stamp);
    } else {
      shared = true;
    }
  }
  if (shared) encode(writes, shared_.emplace_back());
}

void StoredLog::take(const RedoWrite& write, uint64_t stamp) {
  ++log_writes_;
  Newest& newest = newest_[write.table][std::string(write.key)];
  if (newest.stamp > stamp) return;
  newest.stamp = stamp;
  newest.deleted = write.deleted;
  newest.row = write.row;
}

void StoredLog::keep_tables(const std::map<TableId, ListedTable>& those_of_node_0) {
  std::erase_if(tables_, [&](const auto& each) { return !those_of_node_0.contains(each.first); });
}

Status StoredLog::for_each_undelivered(
    const std::function<Status(NodeId to, const RedoWrites& whole)>& visit) const {
  for (const std::vector<std::byte>& record : shared_) {
    RedoWrites writes;
    RDMACC_RETURN_IF_ERROR(decode(record, writes));
    std::set<NodeId> nodes;
    for (const RedoWrite& write : writes.writes) nodes.insert(write.node);
    for (const NodeId node : nodes) {
      if (node == own_.node || covered_.contains({node, writes.lock_ctts})) continue;
      RDMACC_RETURN_IF_ERROR(visit(node, writes));
    }
  }
  return Status();
}

std::vector<std::pair<NodeId, uint64_t>> StoredLog::shared_transactions() const {
  std::set<std::pair<NodeId, uint64_t>> shared;
  const auto add = [&](const RedoWrites& writes) {
    for (const RedoWrite& write : writes.writes) {
      if (write.node != own_.node) shared.emplace(write.node, writes.lock_ctts);
    }
  };
  for (const std::vector<std::byte>& record : shared_) {
    RedoWrites writes;
    CHECK(decode(record, writes).ok());  // it was when it was read
    add(writes);
  }
  for (const auto& [lock_ctts, record] : prepared_) {
    RedoPrepared prepared;
    CHECK(decode(record, prepared).ok());
    add(prepared.writes);
  }
  return {shared.begin(), shared.end()};
}

// A row of the checkpoint that the log has a write of as new as it may be half of each.
Status StoredLog::for_each_row(const std::function<Status(const RedoRow&)>& visit) {
  const auto visit_record = [&](uint8_t kind, std::span<const std::byte> body) {
    if (kind != static_cast<uint8_t>(RedoKind::kRow)) return Status();
    RedoRow row;
    RDMACC_RETURN_IF_ERROR(decode(body, row));
    if (!tables_.contains(row.table)) return Status();
    const auto keys = newest_.find(row.table);
    if (keys != newest_.end()) {
      const auto newest = keys->second.find(std::string(row.key));
      if (newest != keys->second.end()) {
        if (newest->second.stamp >= row.stamp) return Status();
        keys->second.erase(newest);
      }
    }
    return visit(row);
  };
  if (checkpoint_ != 0) {
    Result<SegmentContent> content =
        read_segment(folder_->checkpoint_path(checkpoint_), visit_record);
    if (!content.ok()) return content.status();
  }
  for (const auto& [table, keys] : newest_) {
    if (!tables_.contains(table)) continue;
    for (const auto& [key, newest] : keys) {
      if (newest.deleted) continue;
      RDMACC_RETURN_IF_ERROR(visit(RedoRow{table, newest.stamp, key, newest.row}));
    }
  }
  return Status();
}

}  // namespace rdmacc
