#include "engine/storage/owner/index_audit.h"

#include <algorithm>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {

namespace {
constexpr uint64_t kGroupsPerYield = 16;

Fault fault_of(FaultKind kind, const DirectoryEntry& table, uint64_t offset, uint64_t detail) {
  Fault fault;
  fault.kind = kind;
  fault.table = table.id;
  fault.offset = offset;
  fault.detail = detail;
  return fault;
}
}  // namespace

bool IndexAudit::at_rest(const Header& header) {
  return !locked_exclusively(header.lock) && !sundial_locked(header.sundial);
}

// Readers change rts, leases and reader counts; none of these says anything of what is there.
bool IndexAudit::same(const Header& before, const Header& after) {
  return before.key_hash == after.key_hash && before.table == after.table &&
         before.incarnation == after.incarnation && before.wts == after.wts &&
         before.length == after.length && before.flags == after.flags;
}

bool IndexAudit::settled(uint64_t offset, const Header& before) const {
  const Header after = region_.header(offset);
  return at_rest(before) && at_rest(after) && same(before, after);
}

Status IndexAudit::audit_table(TableId id, AuditReport& report) {
  linked_.clear();
  deleted_.clear();
  RDMACC_RETURN_IF_ERROR(audit_groups(id, report));
  // A group that was split behind this look has been met twice, in part.
  for (std::vector<uint64_t>* slots : {&linked_, &deleted_}) {
    std::sort(slots->begin(), slots->end());
    slots->erase(std::unique(slots->begin(), slots->end()), slots->end());
  }
  report.rows = linked_.size() - deleted_.size();
  return audit_slots(id, report);
}

// ---- From the root array to the records. The array may grow meanwhile, and groups may be split: a
// sibling's bits are larger than its group's, so that no group is missed.

Status IndexAudit::audit_groups(TableId id, AuditReport& report) {
  for (uint64_t i = 0;; ++i) {
    const DirectoryEntry* table = directory_.live(id);
    if (table == nullptr) return Status(Code::kNotFound, "table does not exist");
    const IndexRoot root{table->root};
    if (!walk_.root_valid(root)) {
      Fault fault = fault_of(FaultKind::kRoot, *table, root.offset(), root.depth());
      fault.settled = true;  // this thread alone changes it
      report.add(std::move(fault));
      return Status();
    }
    if (i >= 1ull << root.depth()) return Status();
    audit_root_slot(*table, i, report);
    if (i % kGroupsPerYield == kGroupsPerYield - 1) scheduler_.yield();
  }
}

void IndexAudit::audit_root_slot(const DirectoryEntry& table, uint64_t i, AuditReport& report) {
  const IndexRoot root{table.root};
  GroupLook look;
  look.root_slot = walk_.root_slot(root, i);
  look.offset = walk_.group_at(root, i);
  const auto wrong = [&](uint64_t names, bool settled_now) {
    Fault fault = fault_of(FaultKind::kRoot, table, look.root_slot, i);
    fault.identity = names;
    fault.settled = settled_now;
    report.add(std::move(fault));
  };
  if (look.offset == 0 || !arena_.in_use(PageKind::kGroup, look.offset)) {
    return wrong(region_.load(look.root_slot), true);
  }
  look.gap = region_.header(look.offset);
  const bool claims = look.gap.table == table.id && (look.gap.flags & kFlagGap) != 0 &&
                      look.gap.length <= root.depth() &&
                      group_bits_of(i, look.gap.length) == look.gap.key_hash;
  if (!claims) return wrong(look.offset, settled(look.offset, look.gap));
  // Of all slots that name a group, the lowest has its bits.
  if (look.gap.key_hash == i) audit_group(table, look, report);
}

void IndexAudit::audit_group(const DirectoryEntry& table, const GroupLook& look,
                             AuditReport& report) {
  ++report.groups;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    audit_chain(table, look, bucket, report);
  }
}

void IndexAudit::audit_chain(const DirectoryEntry& table, const GroupLook& look, uint32_t bucket,
                             AuditReport& report) {
  BucketChain buckets;
  const bool whole = walk_.chain(look.offset, bucket, &buckets);
  const bool in_use = std::all_of(buckets.begin() + 1, buckets.end(), [&](uint64_t each) {
    return arena_.in_use(PageKind::kBucket, each);
  });
  if (!whole || !in_use) {
    const uint64_t next = region_.load(buckets.back() + offsetof(Bucket, next));
    Fault fault = fault_of(FaultKind::kChain, table, buckets.back(), next);
    fault.settled = true;  // chains are changed by this thread alone
    report.add(std::move(fault));
  }
  const ChainEntries entries = walk_.entries(buckets);
  std::vector<std::pair<uint64_t, uint64_t>> named;  // slot, place
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == 0) continue;
    const uint64_t place = buckets[i / kEntriesPerBucket] + 8 * (i % kEntriesPerBucket);
    named.emplace_back(entry_offset(entries[i]), place);
    audit_entry(table, look, bucket, place, entries[i], report);
  }
  std::sort(named.begin(), named.end());
  for (size_t i = 1; i < named.size(); ++i) {
    if (named[i].first != named[i - 1].first) continue;
    Fault fault = fault_of(FaultKind::kTwice, table, named[i].second, named[i].first);
    fault.settled = settled(look.offset, look.gap);
    report.add(std::move(fault));
  }
}

void IndexAudit::audit_entry(const DirectoryEntry& table, const GroupLook& look, uint32_t bucket,
                             uint64_t place, uint64_t entry, AuditReport& report) {
  ++report.entries;
  const uint64_t slot = entry_offset(entry);
  const auto wrong = [&](FaultKind kind, const Header* tuple) {
    Fault fault = fault_of(kind, table, place, entry);
    fault.settled = settled(look.offset, look.gap);
    if (tuple != nullptr) {
      fault.identity = tuple->incarnation;
      fault.settled = fault.settled && settled(slot, *tuple);
      fault.key = key_of(table, slot, *tuple).value_or("");
    }
    report.add(std::move(fault));
  };
  if (!arena_.in_use(PageKind::kSlot, slot)) return wrong(FaultKind::kNoRecord, nullptr);
  const Header tuple = region_.header(slot);
  if (tuple.table != table.id || (tuple.flags & kFlagLive) == 0) {
    return wrong(FaultKind::kNoRecord, &tuple);
  }
  const uint64_t hash = tuple.key_hash;
  if (!home_(hash)) return wrong(FaultKind::kWrongNode, &tuple);
  if (group_bits_of(hash, look.gap.length) != look.gap.key_hash) {
    return wrong(FaultKind::kWrongGroup, &tuple);
  }
  if (home_bucket_of(hash) != bucket) return wrong(FaultKind::kWrongBucket, &tuple);
  if (entry_tag(entry) != tag_of(hash)) return wrong(FaultKind::kWrongTag, &tuple);
  linked_.push_back(slot);
  if ((tuple.flags & kFlagDeleted) != 0) deleted_.push_back(slot);
  audit_record(table, slot, tuple, report);
}

void IndexAudit::audit_record(const DirectoryEntry& table, uint64_t slot, const Header& header,
                              AuditReport& report) {
  const std::optional<std::string> key = key_of(table, slot, header);
  if (key && hash_key(table.id, *key) == header.key_hash) return;
  Fault fault = fault_of(FaultKind::kWrongKey, table, slot, header.key_hash);
  fault.identity = header.incarnation;
  fault.key = key.value_or("");
  fault.settled = settled(slot, header);
  report.add(std::move(fault));
}

// Nothing when what is there cannot be a record: torn, or damaged.
std::optional<std::string> IndexAudit::key_of(const DirectoryEntry& table, uint64_t slot,
                                              const Header& header) const {
  uint64_t from = slot + kOffsetOfRecord;
  uint64_t room = table.record_size;
  if ((header.flags & kFlagOverflow) != 0) {
    const uint64_t block = region_.load(from) & kLowOffsetMask;
    if (!arena_.in_use(PageKind::kOverflow, block)) return std::nullopt;
    from = block + sizeof(OverflowHeader);
    room = arena_.unit_bytes(block) - sizeof(OverflowHeader);
  }
  const uint64_t first = region_.load(from);
  const size_t key_bytes = key_bytes_of(&first);
  const uint64_t bytes = record_bytes(key_bytes, 0);
  if (header.length > room || bytes > header.length || key_bytes > kKeyBytesMax) {
    return std::nullopt;
  }
  std::vector<uint64_t> words(round_up(bytes, 8) / 8);
  region_.load_words(from, words.data(), words.size());
  return std::string(reinterpret_cast<const char*>(words.data()) + kKeyLengthBytes, key_bytes);
}

// ---- From the pages to the index: what is in use and in no group that a look-up comes to.

Status IndexAudit::audit_slots(TableId id, AuditReport& report) {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    const DirectoryEntry* table = directory_.live(id);
    if (table == nullptr) return Status(Code::kNotFound, "table does not exist");
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      if (!used || region_.table_of(slot) != id) return;
      ++report.slots;
      if (!std::binary_search(linked_.begin(), linked_.end(), slot)) {
        audit_unlinked(*table, slot, report);
      }
    });
    arena_.for_each_unit(page, PageKind::kGroup, [&](uint64_t group, bool used) {
      if (used && region_.table_of(group) == id) audit_unlisted_group(*table, group, report);
    });
    scheduler_.yield();
  }
  return Status();
}

void IndexAudit::audit_unlinked(const DirectoryEntry& table, uint64_t slot, AuditReport& report) {
  const IndexRoot root{table.root};
  const Header header = region_.header(slot);
  if (!walk_.root_valid(root)) return;
  const uint64_t group = walk_.group_at(root, group_bits_of(header.key_hash, root.depth()));
  if (group == 0) return;
  const Header gap = region_.header(group);
  if (walk_.linked(root, slot)) return;  // since the groups were read
  const bool live = (header.flags & kFlagLive) != 0;
  if (!live && awaited_(slot)) return;
  Fault fault = fault_of(live ? FaultKind::kLostRow : FaultKind::kLeakedSlot, table, slot, group);
  fault.identity = header.incarnation;
  fault.settled = !live || (settled(slot, header) && settled(group, gap));
  if (live) fault.key = key_of(table, slot, header).value_or("");
  report.add(std::move(fault));
}

void IndexAudit::audit_unlisted_group(const DirectoryEntry& table, uint64_t group,
                                      AuditReport& report) {
  const IndexRoot root{table.root};
  const Header gap = region_.header(group);
  if (!walk_.root_valid(root)) return;
  if (gap.key_hash < 1ull << root.depth() && walk_.group_at(root, gap.key_hash) == group) return;
  Fault fault = fault_of(FaultKind::kGroup, table, group, gap.key_hash);
  fault.identity = gap.incarnation;
  fault.settled = settled(group, gap);
  report.add(std::move(fault));
}

}  // namespace rdmacc
