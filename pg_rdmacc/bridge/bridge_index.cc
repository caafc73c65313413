// The ordered indexes of engine_bridge.h.
#include <algorithm>
#include <tuple>

#include "engine/index/ordered_index.h"
#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

RangeScan* find_range_scan(BridgeIndexScan* handle) {
  Attachment* at = attached();
  if (at == nullptr) return nullptr;
  const auto found = at->range_scans.find(reinterpret_cast<uintptr_t>(handle));
  return found == at->range_scans.end() ? nullptr : found->second.get();
}

IndexRange index_range(const BridgeRange& range) {
  return {.low = range.low_bounded ? std::string(view(range.low)) : std::string(),
          .high = range.high_bounded ? std::string(view(range.high)) : std::string(),
          .low_bounded = range.low_bounded,
          .high_bounded = range.high_bounded};
}

Status read_batch(Session& session, RangeScan& scan) {
  scan.entries.clear();
  RDMACC_RETURN_IF_ERROR(scan.cursor.next(session, scan.batch));
  for (const std::string_view entry : scan.batch) {
    scan.entries.push_back({entry.data(), entry.size()});
  }
  return Status();
}

// More than so many come to their leaves at once, as they are many anyway.
constexpr size_t kWaitingEntriesMax = 64;

Status insert(Session& session, const WaitingEntry& waiting, LeafAccess access) {
  session.set_command(waiting.command);
  const Status status =
      OrderedIndex(session, IndexRef{waiting.index}).insert(waiting.entry, access);
  return status.code() == Code::kDuplicateKey ? session.abort_on_conflict() : status;
}

}  // namespace

Status insert_waiting_entries(Session& session, LeafAccess access) {
  TxnState& txn = attached()->txn;
  if (txn.waiting_entries.empty()) return Status();
  std::vector<WaitingEntry> waiting;
  waiting.swap(txn.waiting_entries);
  // Of one command in the order in which every transaction comes to leaves: none waits in a circle.
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
    return std::tie(a.command, a.index, a.entry) < std::tie(b.command, b.index, b.entry);
  });
  Status status;
  for (const WaitingEntry& each : waiting) {
    if (status.ok()) status = insert(session, each, access);
  }
  session.set_command(txn.command);
  return status;
}

}  // namespace rdmacc::bridge

using rdmacc::IndexRef;
using rdmacc::OrderedIndex;
using rdmacc::Session;
using rdmacc::Status;
using rdmacc::bridge::add_object;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::find_range_scan;
using rdmacc::bridge::index_range;
using rdmacc::bridge::IndexLoad;
using rdmacc::bridge::insert_waiting_entries;
using rdmacc::bridge::kWaitingEntriesMax;
using rdmacc::bridge::RangeScan;
using rdmacc::bridge::read_batch;
using rdmacc::bridge::scan_ended;
using rdmacc::bridge::start;
using rdmacc::bridge::view;

void bridge_start_index_insert(uint32_t index, BridgeBytes entry) {
  CHECK(index != rdmacc::kNoTable && entry.size > 0);
  start([=](Session& session) -> Status {
    RDMACC_RETURN_IF_ERROR(insert_waiting_entries(session));
    return OrderedIndex(session, IndexRef{index}).insert(view(entry));
  });
}

void bridge_start_index_insert_late(uint32_t index, BridgeBytes entry) {
  CHECK(index != rdmacc::kNoTable && entry.size > 0);
  start([=](Session& session) -> Status {
    RDMACC_RETURN_IF_ERROR(rdmacc::check_index_entry(view(entry)));
    rdmacc::bridge::TxnState& txn = attached()->txn;
    txn.waiting_entries.push_back({index, txn.command, std::string(view(entry))});
    return txn.waiting_entries.size() < kWaitingEntriesMax ? Status()
                                                           : insert_waiting_entries(session);
  });
}

bool bridge_entries_wait(void) {
  return bridge_txn_active() && !attached()->txn.waiting_entries.empty();
}

void bridge_start_insert_waiting_entries(void) {
  start([](Session& session) { return insert_waiting_entries(session); });
}

void bridge_start_index_remove(uint32_t index, BridgeBytes entry) {
  CHECK(index != rdmacc::kNoTable && entry.size > 0);
  start([=](Session& session) -> Status {
    RDMACC_RETURN_IF_ERROR(insert_waiting_entries(session));
    return OrderedIndex(session, IndexRef{index}).remove(view(entry));
  });
}

// ---- Loads

BridgeIndexLoad* bridge_index_load_create(const void* owner, uint32_t index, bool in_place) {
  CHECK(owner != nullptr && index != rdmacc::kNoTable);
  return add_object<BridgeIndexLoad>(&Attachment::index_loads,
                                     IndexLoad{owner, index, in_place, {}, {}});
}

void bridge_start_index_load(BridgeIndexLoad* handle, const BridgeBytes* entries, size_t count,
                             bool last) {
  CHECK(entries != nullptr || count == 0);
  start([=](Session& session) -> Status {
    RDMACC_RETURN_IF_ERROR(insert_waiting_entries(session));
    const auto found = attached()->index_loads.find(reinterpret_cast<uintptr_t>(handle));
    if (found == attached()->index_loads.end()) return scan_ended();
    IndexLoad& load = *found->second;
    if (!load.loader) load.loader.emplace(session, IndexRef{load.index}, load.in_place);
    for (size_t i = 0; i < count; i++) RDMACC_RETURN_IF_ERROR(load.loader->add(view(entries[i])));
    if (last) RDMACC_RETURN_IF_ERROR(load.loader->finish());
    if (!load.in_place) return Status();
    RDMACC_RETURN_IF_ERROR(load.loader->put_in_place());
    load.loaded.clear();
    for (const auto& [key, row] : load.loader->in_place()) {
      load.loaded.push_back(
          {load.index, false, {key.data(), key.size()}, {row.data(), row.size()}});
    }
    return Status();
  });
}

size_t bridge_index_loaded(BridgeIndexLoad* handle, const BridgeWrite** writes) {
  CHECK(writes != nullptr);
  Attachment* at = attached();
  if (at == nullptr) return 0;
  const auto found = at->index_loads.find(reinterpret_cast<uintptr_t>(handle));
  if (found == at->index_loads.end()) return 0;
  *writes = found->second->loaded.data();
  return found->second->loaded.size();
}

void bridge_index_load_free(BridgeIndexLoad* handle) {
  if (Attachment* at = attached()) at->index_loads.erase(reinterpret_cast<uintptr_t>(handle));
}

// ---- Scans

BridgeIndexScan* bridge_index_scan_create(const void* owner) {
  CHECK(owner != nullptr);
  RangeScan scan;
  scan.owner = owner;
  return add_object<BridgeIndexScan>(&Attachment::range_scans, std::move(scan));
}

void bridge_start_index_seek(BridgeIndexScan* handle, uint32_t index, const BridgeRange* range,
                             bool backward, uint32_t visible_before) {
  CHECK(index != rdmacc::kNoTable && range != nullptr);
  CHECK(!range->low_bounded || range->low.data != nullptr);
  CHECK(!range->high_bounded || range->high.data != nullptr);
  start([=](Session& session) -> Status {
    RangeScan* scan = find_range_scan(handle);
    if (scan == nullptr) return scan_ended();
    RDMACC_RETURN_IF_ERROR(insert_waiting_entries(session));
    scan->cursor.seek(IndexRef{index}, index_range(*range), backward, visible_before);
    scan->sought = true;
    return read_batch(session, *scan);
  });
}

void bridge_start_index_next(BridgeIndexScan* handle) {
  start([=](Session& session) {
    RangeScan* scan = find_range_scan(handle);
    if (scan == nullptr || !scan->sought) return scan_ended();
    return read_batch(session, *scan);
  });
}

size_t bridge_index_entries(BridgeIndexScan* handle, const BridgeBytes** entries) {
  const RangeScan* scan = find_range_scan(handle);
  *entries = scan != nullptr ? scan->entries.data() : nullptr;
  return scan != nullptr ? scan->entries.size() : 0;
}

void bridge_index_scan_free(BridgeIndexScan* handle) {
  if (Attachment* at = attached()) at->range_scans.erase(reinterpret_cast<uintptr_t>(handle));
}
