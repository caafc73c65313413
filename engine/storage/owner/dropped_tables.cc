#include "engine/storage/owner/dropped_tables.h"

#include <algorithm>

namespace rdmacc {

void DroppedTables::add(TableId id) {
  const DirectoryEntry* table = directory_.present(id);
  CHECK(table != nullptr && table->state == TableState::kDropped);
  if (table->rows == 0) {
    directory_.set_free(id);
  } else {
    tables_.emplace_back(Dropped{.id = id}).gone.begin(reclaimer_);
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

DroppedTables::Dropped* DroppedTables::due_table_of(uint64_t slot) {
  const TableId id = region_.table_of(slot);
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [id](const Dropped& each) { return each.id == id; });
  return found != tables_.end() && found->due ? &*found : nullptr;
}

void DroppedTables::sweep() {
  reclaimer_.advance();
  bool any_due = false;
  for (Dropped& each : tables_) {
    each.due = each.gone.over(reclaimer_);
    each.held = false;
    any_due = any_due || each.due;
  }
  if (!any_due) return;
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      Dropped* table = used ? due_table_of(slot) : nullptr;
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
    const bool done = each.due && !each.held;
    if (done) directory_.set_free(each.id);
    return done;
  });
  const bool held =
      std::any_of(tables_.begin(), tables_.end(), [](const Dropped& each) { return each.held; });
  if (held) next_look_us_ = worker_.endpoint().now_us() + kLockedPauseUs;
}

}  // namespace rdmacc
