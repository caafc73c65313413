#include "engine/storage/owner/unit_audit.h"

#include <algorithm>

#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/slot_blocks.h"

namespace rdmacc {

namespace {
constexpr uint64_t kGroupsPerYield = 64;
constexpr uint64_t kUnitsPerYield = 4096;
constexpr PageKind kListedKinds[] = {PageKind::kSlot,  PageKind::kGroup, PageKind::kBucket,
                                     PageKind::kArray, PageKind::kRun,   PageKind::kOverflow};
}  // namespace

void UnitAudit::run(AuditReport& report) {
  const HashIndexOwner::Still still(index_);
  units_.clear();
  reached_.clear();
  list_units();
  for (const TableId id : directory_.tables(TableState::kLive)) {
    if (const DirectoryEntry* table = directory_.live(id)) reach_index(*table);
  }
  reach_blocks();
  std::sort(reached_.begin(), reached_.end());
  judge(report);
  judge_locks(report);
}

uint64_t UnitAudit::identity_of(PageKind kind, uint64_t offset) const {
  switch (kind) {
    case PageKind::kSlot:
    case PageKind::kGroup:
      return region_.load(offset + kOffsetOfIdentity);
    case PageKind::kOverflow:
      return region_.load(offset + offsetof(OverflowHeader, owner_ctts));
    default:
      return 0;
  }
}

// Slots of tables that are there are their tables' business.
void UnitAudit::list_units() {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    for (const PageKind kind : kListedKinds) {
      arena_.for_each_unit(page, kind, [&](uint64_t offset, bool used) {
        const bool tables =
            kind == PageKind::kSlot && directory_.live(region_.table_of(offset)) != nullptr;
        if (used && !tables) units_.push_back({offset, kind, identity_of(kind, offset)});
      });
    }
    scheduler_.yield();
  }
}

// No table is dropped meanwhile, so that `table` stays.
void UnitAudit::reach_index(const DirectoryEntry& table) {
  const IndexRoot root{table.root};
  if (!walk_.root_valid(root)) return;
  reached_.push_back(root.offset());
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    const uint64_t group = walk_.group_first_at(root, i);
    if (group != 0) reach_group(group);
    if (i % kGroupsPerYield == kGroupsPerYield - 1) scheduler_.yield();
  }
}

void UnitAudit::reach_group(uint64_t group) {
  reached_.push_back(group);
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    walk_.chain(group, bucket, &buckets);
    reached_.insert(reached_.end(), buckets.begin() + 1, buckets.end());
  }
}

void UnitAudit::reach_blocks() {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      const DirectoryEntry* table = used ? directory_.present(region_.table_of(slot)) : nullptr;
      if (table == nullptr) return;
      for_each_block_of(region_, slot, table->record_size, table->history,
                        [&](uint64_t block) { reached_.push_back(block); });
    });
    scheduler_.yield();
  }
}

void UnitAudit::judge_locks(AuditReport& report) const {
  const auto look = [&](uint64_t offset, bool used) {
    const Header header = region_.header(offset);
    const bool sundial =
        sundial_locked(header.sundial) && index_.own_worker(static_cast<WorkerId>(header.sundial));
    if (!used || (!sundial && !index_.own_lock(header.lock))) return;
    Fault fault;
    fault.kind = FaultKind::kOwnLock;
    fault.settled = true;
    fault.table = header.table;
    fault.offset = offset;
    fault.identity = fault.detail = sundial ? header.sundial : header.lock;
    report.add(std::move(fault));
  };
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, look);
    arena_.for_each_unit(page, PageKind::kGroup, look);
    scheduler_.yield();
  }
}

void UnitAudit::judge(AuditReport& report) const {
  uint64_t looked_at = 0;
  for (const Unit& unit : units_) {
    if (++looked_at % kUnitsPerYield == 0) scheduler_.yield();
    if (std::binary_search(reached_.begin(), reached_.end(), unit.offset)) continue;
    if (!arena_.in_use(unit.kind, unit.offset)) continue;
    if (identity_of(unit.kind, unit.offset) != unit.identity || awaited_(unit.offset)) continue;
    Fault fault;
    fault.kind = unit.kind == PageKind::kSlot       ? FaultKind::kLeakedSlot
                 : unit.kind == PageKind::kOverflow ? FaultKind::kLeakedBlock
                                                    : FaultKind::kLeakedUnit;
    fault.settled = true;
    fault.offset = unit.offset;
    fault.identity = unit.identity;
    fault.detail = arena_.unit_bytes(unit.offset);
    report.add(std::move(fault));
  }
}

}  // namespace rdmacc
