#include "engine/storage/owner/dropped_tables.h"

#include <algorithm>

namespace rdmacc {

void DroppedTables::add(TableId id) {
  const DirectoryEntry* table = directory_.present(id);
  CHECK(table != nullptr && table->state == TableState::kDropped);
  if (table->rows == 0) {
    directory_.set_free(id);
  } else {
    tables_.push_back({.id = id, .looks = reclaimer_.looks()});
  }
}

bool DroppedTables::awaits(uint64_t slot) const {
  if (!arena_.is_unit(PageKind::kSlot, slot)) return false;
  const TableId id = region_.table_of(slot);
  return std::any_of(tables_.begin(), tables_.end(),
                     [id](const Dropped& each) { return each.id == id; });
}

bool DroppedTables::pending() const {
  return !tables_.empty() && worker_.endpoint().now_us() >= next_look_us_;
}

DroppedTables::Dropped* DroppedTables::due(uint64_t slot) {
  const TableId id = region_.table_of(slot);
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [id](const Dropped& each) { return each.id == id; });
  const bool listed = found != tables_.end() && found->epoch != 0;
  return listed && reclaimer_.epoch() >= found->epoch + 2 ? &*found : nullptr;
}

void DroppedTables::sweep() {
  reclaimer_.advance();
  bool any_due = false;
  for (Dropped& each : tables_) {
    // The first look after the drop may have been under way when it happened.
    if (each.epoch == 0 && reclaimer_.looks() >= each.looks + 2) each.epoch = reclaimer_.epoch();
    each.held = false;
    any_due = any_due || (each.epoch != 0 && reclaimer_.epoch() >= each.epoch + 2);
  }
  if (!any_due) return;
  const uint64_t epoch = reclaimer_.epoch();  // the walk yields, and the epoch may rise
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      Dropped* table = used ? due(slot) : nullptr;
      if (table == nullptr) return;
      if (index_.locked(slot)) {
        table->held = true;
      } else {
        index_.retire_slot(slot);
      }
    });
    worker_.scheduler().yield();
  }
  std::erase_if(tables_, [&](const Dropped& each) {
    const bool done = each.epoch != 0 && epoch >= each.epoch + 2 && !each.held;
    if (done) directory_.set_free(each.id);
    return done;
  });
  const bool held =
      std::any_of(tables_.begin(), tables_.end(), [](const Dropped& each) { return each.held; });
  if (held) next_look_us_ = worker_.endpoint().now_us() + kLockedPauseUs;
}

}  // namespace rdmacc
