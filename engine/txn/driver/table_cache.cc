#include "engine/txn/driver/table_cache.h"

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Root arrays change during a search only by growing; a handful of reads always suffices.
constexpr int kRootAttempts = 8;

Status gone(TableId id) {
  return Status(Code::kNotFound, "table " + std::to_string(id) + " does not exist (any more)");
}

}  // namespace

Result<CachedTable*> TableCache::find(TableId id, VerbCounters& counters) {
  const auto found = tables_.find(id);
  if (found != tables_.end()) return recent_[id % kRecent] = found->second.get();
  if (id == kNoTable) return gone(id);

  VerbArena arena(worker_.pool());
  auto* entry = arena.allocate_array<DirectoryEntry>(1);
  if (entry == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.read(GlobalAddress::make(0, layout_.directory_entry(id)), entry, sizeof(*entry));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  if (entry->id != id || entry->state != TableState::kLive) return gone(id);
  if (entry->record_size == 0 || entry->record_size > kRecordInlineMax ||
      entry->history > kHistoryMax) {
    return Status(Code::kCorrupt, "directory entry of table " + std::to_string(id));
  }
  auto table = std::make_unique<CachedTable>();
  table->id = id;
  table->record_size = entry->record_size;
  table->history = entry->history;
  table->roots.resize(topology_.nodes);
  // Another coroutine may have put it there while this one waited.
  return tables_.try_emplace(id, std::move(table)).first->second.get();
}

void TableCache::doubt_roots() {
  for (auto& [id, table] : tables_) {
    for (CachedRoot& root : table->roots) root.doubtful = true;
  }
}

void TableCache::forget(TableId id) {
  const auto found = tables_.find(id);
  if (found == tables_.end()) return;
  std::unique_ptr<CachedTable> table = std::move(found->second);
  tables_.erase(found);
  if (recent_[id % kRecent] == table.get()) recent_[id % kRecent] = nullptr;
  for (CachedRoot& root : table->roots) root = CachedRoot{};
  forgotten_.push_back(std::move(table));
  const Scheduler& scheduler = worker_.scheduler();
  const size_t callers = scheduler.in_coroutine() ? 1 : 0;
  if (scheduler.busy_coroutines() <= callers) forgotten_.clear();
}

Status TableCache::load_root(CachedTable& table, NodeId node, bool again, VerbCounters& counters) {
  CHECK(node < table.roots.size());
  if (!again && !needs_root(table, node)) return Status();
  const TableId id = table.id;
  CHECK(id != kNoTable);
  VerbArena arena(worker_.pool());
  auto* entry = arena.allocate_array<DirectoryEntry>(1);
  if (entry == nullptr) return out_of_registered_memory();
  const GlobalAddress place = GlobalAddress::make(node, layout_.directory_entry(id));

  for (int attempt = 0; attempt < kRootAttempts; attempt++) {
    DoorbellBatch batch(worker_.scheduler(), counters);
    batch.read(place, entry, sizeof(*entry));
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if (entry->id != id || entry->state != TableState::kLive) {
      // Others may hold the table's address, so it stays; what is large goes.
      for (CachedRoot& root : table.roots) root = CachedRoot{};
      return gone(id);
    }
    if (!again && entry->root == table.roots[node].bits) {
      table.roots[node].doubtful = false;
      return Status();
    }
    const IndexRoot root{entry->root};
    const uint64_t groups = 1ull << root.depth();
    if (root.depth() > kDepthMax || root.offset() + groups * 8 > layout_.region_bytes) {
      return Status(Code::kCorrupt, "index root of table " + std::to_string(id));
    }
    auto* array = arena.allocate_array<uint64_t>(groups);
    if (array == nullptr) return out_of_registered_memory();
    // The entry again behind the array: an array that was replaced meanwhile may be reused.
    batch.read(GlobalAddress::make(node, root.offset()), array, groups * 8);
    batch.read(place, entry, sizeof(*entry));
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if (entry->id != id || entry->root != root.bits) continue;
    for (uint64_t i = 0; i < groups; i++) {
      if (!layout_.holds_header(array[i])) {
        return Status(Code::kCorrupt, "index root of table " + std::to_string(id));
      }
    }
    CachedRoot& cached = table.roots[node];
    cached.bits = root.bits;
    cached.doubtful = cached.patched = false;
    cached.groups.assign(array, array + groups);
    cached.partition.reset();
    return Status();
  }
  return Status(Code::kUnavailable, "index root of table " + std::to_string(id) + " is moving");
}

Status TableCache::refresh_group(CachedTable& table, NodeId node, uint64_t hash,
                                 VerbCounters& counters) {
  CHECK(node < table.roots.size());
  if (needs_root(table, node)) return load_root(table, node, true, counters);
  VerbArena arena(worker_.pool());
  auto* group = arena.allocate_array<uint64_t>(1);
  auto* entry = arena.allocate_array<DirectoryEntry>(1);
  if (group == nullptr || entry == nullptr) return out_of_registered_memory();
  const IndexRoot root{table.roots[node].bits};
  const uint64_t at = group_bits_of(hash, root.depth());
  DoorbellBatch batch(worker_.scheduler(), counters);
  batch.read(GlobalAddress::make(node, root.offset() + at * 8), group, sizeof(*group));
  // Behind it: an array that was replaced meanwhile may be reused.
  batch.read(GlobalAddress::make(node, layout_.directory_entry(table.id)), entry, sizeof(*entry));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  CachedRoot& cached = table.roots[node];
  const bool same = entry->id == table.id && entry->state == TableState::kLive &&
                    entry->root == root.bits && cached.bits == root.bits &&
                    layout_.holds_header(*group);
  if (!same) return load_root(table, node, true, counters);
  cached.groups[at] = *group;
  cached.patched = true;
  cached.partition.reset();
  return Status();
}

}  // namespace rdmacc
