// Rows as a log on disk has them: read for its checkpoints beside transactions, and put back in
// place, without locks, while a node gets its contents back.

#include "engine/storage/layout/overflow.h"
#include "engine/storage/owner/storage_node.h"

namespace rdmacc {

namespace {
// Looks at a row that changes while it is read.
constexpr int kLooksMax = 4;
constexpr uint64_t kOffsetOfContents = offsetof(Superblock, contents);
static_assert(kOffsetOfContents % 8 == 0);
}  // namespace

StorageService::Contents StorageNode::contents() const {
  return static_cast<Contents>(region_.load(kOffsetOfContents));
}

void StorageNode::set_contents(Contents contents) {
  CHECK(contents <= Contents::kOnDisk);
  region_.store(kOffsetOfContents, static_cast<uint64_t>(contents));
}

// False: there is none. What is locked may be in the middle of an install, where an update keeps
// the key's bytes, and an insert is linked when its record is whole.
bool StorageNode::read_row(uint64_t slot, std::string& record, StoredRow& row) const {
  for (int look = 0; look < kLooksMax; ++look) {
    const Header before = region_.header(slot);
    if ((before.flags & kFlagLive) == 0 || (before.flags & kFlagDeleted) != 0) return false;
    const DirectoryEntry* table = directory_.live(before.table);
    if (table == nullptr) return false;
    uint64_t at = slot + kOffsetOfRecord, room = table->record_size;
    if ((before.flags & kFlagOverflow) != 0) {
      const uint64_t block = region_.load(at) & kLowOffsetMask;
      if (!arena_.in_use(PageKind::kOverflow, block)) continue;
      at = block + sizeof(OverflowHeader);
      room = arena_.unit_bytes(block) - sizeof(OverflowHeader);
    }
    if (before.length < kKeyLengthBytes || before.length > room) continue;
    const uint64_t words = round_up(before.length, 8) / 8;
    std::vector<uint64_t> image(words);
    region_.load_words(at, image.data(), words);
    record.assign(reinterpret_cast<const char*>(image.data()), before.length);
    const Header after = region_.header(slot);
    const size_t key_bytes = key_bytes_of(record.data());
    if (key_bytes > record.size() - kKeyLengthBytes) continue;
    row.table = before.table;
    row.stamp = before.wts;
    row.key = std::string_view(record).substr(kKeyLengthBytes, key_bytes);
    row.row = std::string_view(record).substr(kKeyLengthBytes + key_bytes);
    if (hash_key(row.table, row.key) != before.key_hash) continue;
    const bool at_rest = !locked_exclusively(before.lock) && !locked_exclusively(after.lock) &&
                         before.wts == after.wts && before.incarnation == after.incarnation;
    if (at_rest || index_.linked(slot)) return true;
  }
  return false;
}

void StorageNode::rows_of_page(uint64_t page, const std::function<void(const StoredRow&)>& visit) {
  CHECK(page < arena_.page_count());
  std::string record;
  StoredRow row;
  arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
    if (used && read_row(slot, record, row)) visit(row);
  });
}

Status StorageNode::restore_table(const ListedTable& table) {
  CHECK(contents() == Contents::kRestoring && table.id != kNoTable);
  const TableSpec spec{table.system_id,   table.database, table.relfilenode,
                       table.record_size, table.history,  table.has_distribution_key};
  RDMACC_RETURN_IF_ERROR(directory_.may_create(table.id, spec));
  Result<IndexRoot> root = index_.build(table.id);
  if (!root.ok()) return root.status();
  directory_.publish(table.id, spec, root->bits);
  return Status();
}

Status StorageNode::restore_row(const LoadedRows& load, const RowToLoad& row) {
  CHECK(contents() == Contents::kRestoring && row.node == region_.node());
  bool exists = false;
  return load_row(load, row, &exists);
}

}  // namespace rdmacc
