// The rows, scans and tables of engine_bridge.h.
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <span>

#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

BridgeRow bridge_row(const RowView& row) {
  return {.found = row.found,
          .key = {row.key.data(), row.key.size()},
          .row = {row.row.data(), row.row.size()},
          .version = row.version,
          .node = row.node};
}

}  // namespace
}  // namespace rdmacc::bridge

using rdmacc::Result;
using rdmacc::Status;
using rdmacc::bridge::add_object;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::bridge_row;
using rdmacc::bridge::do_at_once;
using rdmacc::bridge::find_object;
using rdmacc::bridge::free_object;
using rdmacc::bridge::OpenBatch;
using rdmacc::bridge::Scan;
using rdmacc::bridge::scan_ended;
using rdmacc::bridge::start;
using rdmacc::bridge::start_beside_load;
using rdmacc::bridge::view;

// ---- Rows

void bridge_start_get(uint32_t table, BridgeBytes key, uint32_t visible_before, BridgeRow* out) {
  CHECK(table != rdmacc::kNoTable && key.size > 0 && out != nullptr);
  if (do_at_once([=](rdmacc::Session& session) -> std::optional<Status> {
        rdmacc::RowView row;
        const bool known = session.touched_engine() &&
                           session.read_own_sets(table, view(key), row, visible_before);
        if (!known) return std::nullopt;
        *out = bridge_row(row);
        return Status();
      })) {
    return;
  }
  start([=](rdmacc::Session& session) {
    rdmacc::RowView row;
    Status status = session.get(table, view(key), row, visible_before);
    *out = bridge_row(row);
    return status;
  });
}

void bridge_start_check_reads(void) {
  start([](rdmacc::Session& session) { return session.check_reads(); });
}

void bridge_start_wait_for_splits(void) {
  start([](rdmacc::Session& session) { return session.wait_for_splits(); });
}

void bridge_start_get_many(uint32_t table, const BridgeBytes* keys, size_t count,
                           uint32_t visible_before, bool to_write, BridgeRow* out) {
  CHECK(table != rdmacc::kNoTable && (count == 0 || (keys != nullptr && out != nullptr)));
  start([=](rdmacc::Session& session) {
    boost::container::small_vector<std::string_view, 4> views(count);
    std::transform(keys, keys + count, views.begin(), view);
    boost::container::small_vector<rdmacc::RowView, 4> rows(count);
    Status status = session.get_many(table, std::span(views.data(), count),
                                     std::span(rows.data(), count), visible_before, to_write);
    std::transform(rows.begin(), rows.end(), out, bridge_row);
    return status;
  });
}

BridgeReadBatch* bridge_read_batch_create(const void* owner) {
  CHECK(owner != nullptr);
  OpenBatch rows;
  rows.owner = owner;
  return add_object<BridgeReadBatch>(&Attachment::read_batches, std::move(rows));
}

void bridge_start_read_batch(BridgeReadBatch* handle, uint32_t table, const BridgeBytes* keys,
                             size_t count, uint32_t visible_before, BridgeRow* out) {
  CHECK(table != rdmacc::kNoTable && count > 0 && keys != nullptr && out != nullptr);
  start([=](rdmacc::Session& session) {
    OpenBatch* rows = find_object(&Attachment::read_batches, handle);
    if (rows == nullptr) return scan_ended();
    rows->keys.resize(count);
    std::transform(keys, keys + count, rows->keys.begin(), view);
    rows->views.assign(count, rdmacc::RowView{});
    Status status = session.read_batch(table, rows->keys, rows->batch, rows->views, visible_before);
    std::transform(rows->views.begin(), rows->views.end(), out, bridge_row);
    return status;
  });
}

void bridge_read_batch_free(BridgeReadBatch* handle) {
  free_object(&Attachment::read_batches, handle);
}

void bridge_start_put(uint32_t table, BridgeBytes key, BridgeBytes row) {
  CHECK(table != rdmacc::kNoTable && key.size > 0 && row.data != nullptr);
  if (do_at_once([=](rdmacc::Session& session) {
        return session.put_known(table, view(key), view(row));
      })) {
    return;
  }
  start([=](rdmacc::Session& session) { return session.put(table, view(key), view(row)); });
}

void bridge_start_insert(uint32_t table, BridgeBytes key, BridgeBytes row, bool check_absent) {
  CHECK(table != rdmacc::kNoTable && key.size > 0 && row.data != nullptr);
  start([=](rdmacc::Session& session) {
    return check_absent ? session.insert(table, view(key), view(row))
                        : session.insert_unchecked(table, view(key), view(row));
  });
}

void bridge_start_remove(uint32_t table, BridgeBytes key) {
  CHECK(table != rdmacc::kNoTable && key.size > 0);
  if (do_at_once(
          [=](rdmacc::Session& session) { return session.remove_known(table, view(key)); })) {
    return;
  }
  start([=](rdmacc::Session& session) { return session.remove(table, view(key)); });
}

namespace {

Status apply(rdmacc::Session& session, const BridgeWrite& write) {
  const std::string_view key = view(write.key);
  if (write.deleted) {
    const Status removed = session.remove(write.table, key);
    return removed.code() == rdmacc::Code::kNotFound ? Status() : removed;
  }
  const Status put = session.put(write.table, key, view(write.row));
  if (put.code() != rdmacc::Code::kNotFound) return put;
  return session.insert(write.table, key, view(write.row));
}

}  // namespace

void bridge_start_apply(const BridgeWrite* writes, size_t count) {
  CHECK(writes != nullptr && count > 0);
  start([=](rdmacc::Session& session) {
    for (size_t i = 0; i < count; i++) RDMACC_RETURN_IF_ERROR(apply(session, writes[i]));
    return Status();
  });
}

void bridge_start_try_lock(uint32_t table, BridgeBytes key, rdmacc::RowLockMode mode,
                           uint32_t visible_before, BridgeRow* out, rdmacc::RowLock* result) {
  CHECK(table != rdmacc::kNoTable && key.size > 0 && out != nullptr && result != nullptr);
  start([=](rdmacc::Session& session) {
    const auto lock = session.try_lock(table, view(key), mode);
    if (!lock.ok()) return lock.status();
    *result = rdmacc::RowLock::kBusy;
    if (lock.value() == rdmacc::RowLock::kBusy) return Status();
    rdmacc::RowView row;
    RDMACC_RETURN_IF_ERROR(session.get(table, view(key), row, visible_before));
    *out = bridge_row(row);
    *result = row.found ? rdmacc::RowLock::kGot : rdmacc::RowLock::kAbsent;
    return Status();
  });
}

BridgeLockHolder bridge_lock_holder(void) {
  const Attachment* at = attached();
  const uint64_t holder = at != nullptr ? at->session->held_by() : 0;
  return {.transaction = holder, .worker = holder != 0 ? rdmacc::worker_of_ctts(holder) : -1};
}

BridgeScan* bridge_scan_create(const void* owner) {
  CHECK(owner != nullptr);
  Scan scan;
  scan.owner = owner;
  return add_object<BridgeScan>(&Attachment::scans, std::move(scan));
}

void bridge_start_scan(BridgeScan* handle, uint32_t table, uint32_t visible_before,
                       rdmacc::ScanMode mode, rdmacc::ScanWants wants, uint64_t* shared_walk) {
  CHECK(table != rdmacc::kNoTable);
  start([=](rdmacc::Session& session) {
    Scan* scan = find_object(&Attachment::scans, handle);
    if (scan == nullptr) return scan_ended();
    scan->rows.clear();
    CHECK(scan->cursor == nullptr);  // a scan is opened once
    Result<rdmacc::ScanHandle> opened =
        session.scan(table, visible_before, mode, wants, shared_walk);
    if (!opened.ok()) return opened.status();
    scan->cursor = std::move(opened.value());
    scan->counts_only = wants.count_only;
    return Status();
  });
}

void bridge_start_share_scan(uint32_t table, uint64_t* shared_walk) {
  CHECK(table != rdmacc::kNoTable);
  start([=](rdmacc::Session& session) { return session.share_scan(table, shared_walk); });
}

uint64_t bridge_shared_walk_anew(uint64_t shared_walk) {
  return rdmacc::Session::shared_walk_anew(shared_walk);
}

// No scan that has begun is of the table that is loaded: a statement does not read what it fills.
void bridge_start_scan_next(BridgeScan* handle) {
  start_beside_load([=](rdmacc::Session& session) {
    Scan* scan = find_object(&Attachment::scans, handle);
    if (scan == nullptr || scan->cursor == nullptr) return scan_ended();
    scan->count = 0;
    if (scan->counts_only) return session.scan_count(*scan->cursor, scan->count);
    RDMACC_RETURN_IF_ERROR(session.scan_next(*scan->cursor, scan->batch));
    scan->count = scan->batch.size();
    if (scan->rows.size() < scan->count) scan->rows.resize(scan->count);
    std::transform(scan->batch.begin(), scan->batch.end(), scan->rows.begin(), bridge_row);
    return Status();
  });
}

size_t bridge_scan_rows(BridgeScan* handle, const BridgeRow** rows) {
  const Scan* scan = find_object(&Attachment::scans, handle);
  const bool counts_only = scan != nullptr && scan->counts_only;
  *rows = scan != nullptr && !counts_only ? scan->rows.data() : nullptr;
  return scan != nullptr ? scan->count : 0;
}

void bridge_scan_free(BridgeScan* handle) { free_object(&Attachment::scans, handle); }

void bridge_scans_free_of(const void* owner) {
  CHECK(owner != nullptr);
  Attachment* at = attached();
  // A command that is under way (in a process that just ends) may still use its scan.
  if (at == nullptr || at->pump->busy()) return;
  const auto owned = [owner](const auto& scan) { return scan.second->owner == owner; };
  std::erase_if(at->scans, owned);
  std::erase_if(at->range_scans, owned);
  std::erase_if(at->read_batches, owned);
  std::erase_if(at->index_loads, owned);
}

// ---- Tables

void bridge_start_create_table(const rdmacc::TableSpec* spec, uint32_t* id) {
  CHECK(spec != nullptr && id != nullptr && spec->record_size > 0);
  start([=](rdmacc::Session& session) {
    const Result<rdmacc::TableMeta> table = session.create_table(*spec);
    if (table.ok()) *id = table.value().id;
    return table.status();
  });
}

void bridge_start_create_again(const rdmacc::ListedTable* table) {
  CHECK(table != nullptr && table->id != rdmacc::kNoTable);
  start([again = *table](rdmacc::Session& session) {
    const rdmacc::TableSpec spec{.system_id = again.system_id,
                                 .database = again.database,
                                 .relfilenode = again.relfilenode,
                                 .record_size = again.record_size,
                                 .history = again.history,
                                 .has_distribution_key = again.has_distribution_key};
    return session.create_table(spec, again.id).status();
  });
}

void bridge_start_find_table(const rdmacc::TableSpec* identity, uint32_t* id, uint64_t* made_us) {
  CHECK(identity != nullptr && id != nullptr);
  start([=](rdmacc::Session& session) {
    const Result<rdmacc::TableMeta> table = session.find_table(*identity);
    if (table.ok()) *id = table.value().id;
    if (table.ok() && made_us != nullptr) *made_us = table.value().created_us;
    return table.status();
  });
}

void bridge_start_drop_table(uint32_t id) {
  start([=](rdmacc::Session& session) { return session.drop_table(id); });
}

void bridge_start_list_tables(rdmacc::TableList which) {
  start([=](rdmacc::Session& session) -> Status {
    Attachment& at = *attached();
    at.tables.clear();
    auto tables = session.list_tables(which);
    if (!tables.ok()) return tables.status();
    at.tables = std::move(*tables);
    return Status();
  });
}

size_t bridge_tables(const rdmacc::ListedTable** tables) {
  const Attachment* at = attached();
  *tables = at != nullptr ? at->tables.data() : nullptr;
  return at != nullptr ? at->tables.size() : 0;
}

void bridge_start_lose_if_used(uint32_t id) {
  start([=](rdmacc::Session& session) { return session.lose_if_used_since(id); });
}

void bridge_start_locked_by_others(const uint32_t* ids, size_t count, bool* locked) {
  CHECK(ids != nullptr && count > 0 && locked != nullptr);
  start([=](rdmacc::Session& session) {
    const rdmacc::Result<bool> found = session.locked_by_others({ids, count});
    if (found.ok()) *locked = found.value();
    return found.status();
  });
}

void bridge_start_table_size(uint32_t id, uint64_t* bytes) {
  CHECK(id != rdmacc::kNoTable && bytes != nullptr);
  start([=](rdmacc::Session& session) {
    const Result<rdmacc::TableSize> size = session.table_size(id);
    if (size.ok()) *bytes = size.value().bytes;
    return size.status();
  });
}

void bridge_start_node_statistics(int node, rdmacc::NodeStatistics* out) {
  start([=](rdmacc::Session& session) {
    CHECK(node >= 0 && node < session.topology().nodes && out != nullptr);
    const auto statistics =
        session.node_statistics(static_cast<rdmacc::NodeId>(node), BRIDGE_SILENCE_US_MAX);
    attached()->node_answered = statistics.status().code() != rdmacc::Code::kTimeout;
    if (!attached()->node_answered) return Status();
    if (!statistics.ok()) return statistics.status();
    *out = statistics.value();
    return Status();
  });
}
