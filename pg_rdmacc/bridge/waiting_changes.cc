// Changes of indexes that wait for the commit (docs/indexes.md).
#include <algorithm>
#include <cstring>
#include <span>

#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

// More than so many bytes do not wait: a transaction that writes so many rows has sets of its own
// that are larger by far.
constexpr size_t kWaitingBytesMax = 32 << 20;
// More than so many come to their leaves without locks, as they would hold too many for too long.
constexpr size_t kLockedChangesMax = 4096;
// A long list lets others of the session's thread in between, a cancel among them.
constexpr size_t kChangesAtOnce = 1024;

// The bytes behind the first column's marker: those in which entries differ.
uint64_t beginning_of(std::string_view entry) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, entry.data() + 1, std::min(entry.size() - 1, sizeof(bytes)));
  return __builtin_bswap64(bytes);
}

// In the order in which they came, which is no order to lock leaves in.
Status make_one_by_one(Session& session, uint32_t index, const WaitingIndex& of,
                       std::span<const WaitingChange> waiting) {
  MissingEntries& missing = attached()->missing;
  bool all_there = true;
  for (const WaitingChange& each : waiting) {
    const EntryChange change{each.kind, of.entry(each)};
    Status status = OrderedIndex(session, IndexRef{index}).change({&change, 1});
    all_there = all_there && status.code() != Code::kNotFound;
    if (status.code() == Code::kNotFound && missing.is_stale(index, change.entry)) {
      status = remove_stale_entry(session, IndexRef{index}, change.entry);
    }
    if (status.code() == Code::kDuplicateKey || status.code() == Code::kNotFound) {
      return session.abort_on_conflict();
    }
    RDMACC_RETURN_IF_ERROR(status);
  }
  if (all_there) missing.forget(index);
  return Status();
}

// All of one command, or as if they were.
Status make(Session& session, uint32_t index, const WaitingIndex& of,
            std::span<WaitingChange> waiting, LeafAccess access) {
  if (attached()->missing.suspects(index)) {
    return make_one_by_one(session, index, of, waiting);
  }
  const auto below = [&](const WaitingChange& a, const WaitingChange& b) {
    if (a.marker != b.marker) return a.marker < b.marker;
    return a.beginning != b.beginning ? a.beginning < b.beginning : of.entry(a) < of.entry(b);
  };
  if (!std::is_sorted(waiting.begin(), waiting.end(), below)) {
    std::stable_sort(waiting.begin(), waiting.end(), below);
  }
  std::vector<EntryChange> changes;
  changes.reserve(std::min(waiting.size(), kChangesAtOnce));
  while (!waiting.empty()) {
    const auto some = waiting.first(std::min(waiting.size(), kChangesAtOnce));
    waiting = waiting.subspan(some.size());
    changes.clear();
    for (const WaitingChange& each : some) changes.push_back({each.kind, of.entry(each)});
    const Status status = OrderedIndex(session, IndexRef{index}).change(changes, access);
    if (status.code() == Code::kNotFound) attached()->missing.batch_missed(index);
    if (status.code() == Code::kDuplicateKey || status.code() == Code::kNotFound) {
      return session.abort_on_conflict();
    }
    RDMACC_RETURN_IF_ERROR(status);
    if (!waiting.empty()) session.scheduler().yield();
  }
  attached()->missing.forget(index);
  return Status();
}

// Each command's by itself, since a cursor that is older than one does not see what it has changed;
// a trigger's commands come in the midst of another one's.
Status make_by_command(Session& session, uint32_t index, WaitingIndex& waiting) {
  std::span<WaitingChange> rest(waiting.changes);
  Status status;
  while (status.ok() && !rest.empty()) {
    const uint32_t command = rest.front().command;
    const auto next = std::find_if(rest.begin(), rest.end(), [command](const auto& change) {
      return change.command != command;
    });
    const auto count = static_cast<size_t>(next - rest.begin());
    session.set_command(command);
    status = make(session, index, waiting, rest.first(count), LeafAccess::kRead);
    rest = rest.subspan(count);
  }
  session.set_command(attached()->txn.command);
  return status;
}

}  // namespace

Status flush_index(Session& session, uint32_t index) {
  WaitingChanges& waits = attached()->txn.waiting;
  const auto found = waits.of_index.find(index);
  if (found == waits.of_index.end()) return Status();
  WaitingIndex waiting = std::move(found->second);
  waits.of_index.erase(found);
  waits.bytes -= waiting.memory();
  return make_by_command(session, index, waiting);
}

Status flush_indexes(Session& session) {
  WaitingChanges waits = std::exchange(attached()->txn.waiting, {});
  for (auto& [index, waiting] : waits.of_index) {
    RDMACC_RETURN_IF_ERROR(make_by_command(session, index, waiting));
  }
  return Status();
}

// In the order in which every transaction comes to leaves, so that none waits in a circle. No
// cursor is open any more that an older command's changes would matter to.
Status flush_indexes_to_commit(Session& session) {
  WaitingChanges waits = std::exchange(attached()->txn.waiting, {});
  size_t count = 0;
  for (const auto& [index, waiting] : waits.of_index) count += waiting.changes.size();
  const LeafAccess access = count <= kLockedChangesMax ? LeafAccess::kLock : LeafAccess::kRead;
  for (auto& [index, waiting] : waits.of_index) {
    RDMACC_RETURN_IF_ERROR(make(session, index, waiting, waiting.changes, access));
  }
  return Status();
}

bool change_later(uint32_t index, EntryChange::Kind kind, std::string_view entry) {
  CHECK(index != kNoTable && !entry.empty() && bridge_txn_active());
  const Status status = check_index_entry(entry);
  set_error(status);
  if (!status.ok()) return false;
  TxnState& txn = attached()->txn;
  no_throw([&] {
    WaitingIndex& waiting = txn.waiting.of_index[index];
    CHECK(entry.size() <= UINT16_MAX && waiting.bytes.size() <= UINT32_MAX - entry.size());
    const auto at = static_cast<uint32_t>(waiting.bytes.size());
    waiting.bytes.append(entry);
    waiting.changes.push_back({.beginning = beginning_of(entry),
                               .marker = static_cast<uint8_t>(entry.front()),
                               .kind = kind,
                               .entry_bytes = static_cast<uint16_t>(entry.size()),
                               .entry_at = at,
                               .command = txn.command});
    txn.waiting.bytes += sizeof(WaitingChange) + entry.size();
  });
  return txn.waiting.bytes > kWaitingBytesMax;
}

}  // namespace rdmacc::bridge
