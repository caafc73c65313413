// The ordered indexes of engine_bridge.h.
#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

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

}  // namespace
}  // namespace rdmacc::bridge

using rdmacc::EntryChange;
using rdmacc::IndexRef;
using rdmacc::OrderedIndex;
using rdmacc::Session;
using rdmacc::Status;
using rdmacc::bridge::add_object;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::change_later;
using rdmacc::bridge::find_object;
using rdmacc::bridge::flush_index;
using rdmacc::bridge::free_object;
using rdmacc::bridge::index_range;
using rdmacc::bridge::IndexLoad;
using rdmacc::bridge::RangeScan;
using rdmacc::bridge::read_batch;
using rdmacc::bridge::scan_ended;
using rdmacc::bridge::start;
using rdmacc::bridge::view;

void bridge_start_index_insert(uint32_t index, BridgeBytes entry) {
  CHECK(index != rdmacc::kNoTable && entry.size > 0);
  start([=](Session& session) -> Status {
    RDMACC_RETURN_IF_ERROR(flush_index(session, index));
    return OrderedIndex(session, IndexRef{index}).insert(view(entry));
  });
}

bool bridge_index_insert_late(uint32_t index, BridgeBytes entry) {
  return change_later(index, EntryChange::Kind::kInsert, view(entry));
}

bool bridge_index_remove_late(uint32_t index, BridgeBytes entry, bool if_there) {
  const auto kind = if_there ? EntryChange::Kind::kRemoveIfThere : EntryChange::Kind::kRemove;
  return change_later(index, kind, view(entry));
}

bool bridge_changes_wait(void) {
  return bridge_txn_active() && !attached()->txn.waiting.of_index.empty();
}

void bridge_start_flush_indexes(void) { start(rdmacc::bridge::flush_indexes); }

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
    IndexLoad* found = find_object(&Attachment::index_loads, handle);
    if (found == nullptr) return scan_ended();
    IndexLoad& load = *found;
    RDMACC_RETURN_IF_ERROR(flush_index(session, load.index));
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
  const IndexLoad* load = find_object(&Attachment::index_loads, handle);
  if (load == nullptr) return 0;
  *writes = load->loaded.data();
  return load->loaded.size();
}

void bridge_index_load_free(BridgeIndexLoad* handle) {
  free_object(&Attachment::index_loads, handle);
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
    RangeScan* scan = find_object(&Attachment::range_scans, handle);
    if (scan == nullptr) return scan_ended();
    RDMACC_RETURN_IF_ERROR(flush_index(session, index));
    scan->cursor.seek(IndexRef{index}, index_range(*range), backward, visible_before);
    scan->sought = true;
    return read_batch(session, *scan);
  });
}

void bridge_start_index_next(BridgeIndexScan* handle) {
  start([=](Session& session) {
    RangeScan* scan = find_object(&Attachment::range_scans, handle);
    if (scan == nullptr || !scan->sought) return scan_ended();
    return read_batch(session, *scan);
  });
}

size_t bridge_index_entries(BridgeIndexScan* handle, const BridgeBytes** entries) {
  const RangeScan* scan = find_object(&Attachment::range_scans, handle);
  *entries = scan != nullptr ? scan->entries.data() : nullptr;
  return scan != nullptr ? scan->entries.size() : 0;
}

void bridge_index_scan_free(BridgeIndexScan* handle) {
  free_object(&Attachment::range_scans, handle);
}
