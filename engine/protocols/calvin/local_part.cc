#include "engine/protocols/calvin/local_part.h"

#include "engine/storage/overflow.h"
#include "engine/txn/install.h"

namespace rdmacc {

LocalPart::LocalPart(StageContext& stage, const OrderArea& area, NodeId node,
                     const OrderedRequest& request)
    : stage_(stage), area_(area), node_(node), request_(request) {
  for (const OrderedRead& read : request.reads) touch(read.table, read.key);
  for (const OrderedWrite& write : request.writes) touch(write.table, write.key);
}

// nullptr for other nodes' keys.
LocalPart::LocalKey* LocalPart::touch(TableId table, const std::string& key) {
  const uint64_t hash = hash_key(table, key);
  if (stage_.engine.map.primary_of(hash) != node_) return nullptr;
  std::string name(reinterpret_cast<const char*>(&table), sizeof(table));
  LocalKey*& known = key_of_[name.append(key)];
  if (known == nullptr) {
    keys_.push_back(LocalKey{OrderedRead{table, key, false, 0}, hash});
    known = &keys_.back();
  }
  return known;
}

Status LocalPart::find(std::span<LocalKey* const> keys, KeyWork::Mode mode) {
  std::vector<KeyWork> works;
  for (const LocalKey* key : keys) {
    KeyWork& work = works.emplace_back();
    work.table = key->name.table;
    work.hash = key->hash;
    work.key = key->name.key;
    work.mode = mode;
  }
  RDMACC_RETURN_IF_ERROR(find_keys(stage_, works));
  for (size_t i = 0; i < works.size(); i++) {
    if (works[i].result == KeyWork::Result::kAborted) return aborted(works[i].reason);
    keys[i]->work = works[i];
  }
  return Status();
}

Status LocalPart::look(LocalVerdict& verdict) {
  std::vector<LocalKey*> all;
  for (LocalKey& key : keys_) all.push_back(&key);
  RDMACC_RETURN_IF_ERROR(find(all, KeyWork::Mode::kRead));
  return check(verdict);
}

Status LocalPart::check(LocalVerdict& verdict) {
  bool stale = false;
  for (uint32_t i = 0; i < request_.reads.size(); i++) {
    const OrderedRead& read = request_.reads[i];
    const LocalKey* key = touch(read.table, read.key);
    if (key == nullptr) continue;
    OrderedRow row;
    row.found = key->work.result == KeyWork::Result::kFound;
    // A tombstone says that a key is absent, too.
    const bool tuple = !key->work.access.header.null();
    row.version = tuple ? key->work.access.read_wts : key->work.gap.read_wts;
    if (request_.procedure != 0) {
      std::string_view name, bytes;
      if (row.found && !split_record(key->work.record, name, bytes)) {
        return Status(Code::kCorrupt, "a record");
      }
      row.row = bytes;
      verdict.reads.emplace_back(i, std::move(row));
      continue;
    }
    // A key that was absent and is absent is unchanged, whatever else happened to its group.
    stale = stale || row.found != read.found || (row.found && row.version != read.version);
    if (!row.found && row.version != read.version) verdict.reads.emplace_back(i, std::move(row));
  }
  if (stale) return aborted(AbortReason::kReconnaissanceStale);
  for (const OrderedGroup& group : request_.scanned) {
    if (group.gap.header.node() != node_) continue;
    if (!group_unchanged(group)) return aborted(AbortReason::kReconnaissanceStale);
  }
  return Status();
}

// By the CPU: nobody else changes headers of this node now.
bool LocalPart::group_unchanged(const OrderedGroup& group) const {
  const OwnedRegion& region = area_.region();
  const uint64_t at = group.gap.header.offset();
  if (!area_.layout().holds_header(at)) return false;
  const Header gap = region.header(at);
  if ((gap.flags & kFlagGap) == 0 || !same_identity(group.gap, gap) ||
      gap.wts != group.gap.read_wts) {
    return false;
  }
  OrderedGroup now;
  for (uint32_t home = 0; home < kBucketsPerGroup; home++) {
    uint64_t bucket = bucket_offset(at, home);
    for (uint32_t links = 0; bucket != 0; links++) {
      const bool inside = bucket % 64 == 0 && bucket >= area_.layout().pages &&
                          bucket + sizeof(Bucket) <= area_.layout().region_bytes;
      if (!inside || links > kChainMax) return false;
      for (uint32_t i = 0; i < kEntriesPerBucket; i++) {
        const uint64_t entry = region.load(bucket + i * sizeof(uint64_t));
        const uint64_t tuple = entry_offset(entry);
        if (entry == 0 || !area_.layout().holds_header(tuple)) continue;
        const Header header = region.header(tuple);
        now.add(tuple, header.incarnation, header.wts);
      }
      bucket = region.load(bucket + offsetof(Bucket, next));
    }
  }
  return now.digest == group.digest;
}

void LocalPart::add_write(const OrderedWrite& write) {
  LocalKey* key = touch(write.table, write.key);
  if (key == nullptr) return;
  const bool exists = key->work.result == KeyWork::Result::kFound;
  if (!exists && write.deleted) return;
  const bool tuple = !key->work.access.header.null();  // a row, or the tombstone of one
  LocalWrite& added = writes_.emplace_back();
  added.key = key;
  added.kind =
      write.deleted ? WriteKind::kUnlink : (tuple ? WriteKind::kUpdate : WriteKind::kInsert);
  if (tuple) added.tuple = key->work.access;
  if (tuple && key->work.overflow != 0) {
    added.old_overflow = GlobalAddress::make(node_, key->work.overflow);
  }
  if (write.deleted) return;
  const auto key_bytes = static_cast<uint32_t>(write.key.size());
  added.record.assign(reinterpret_cast<const char*>(&key_bytes), sizeof(key_bytes));
  added.record.append(write.key).append(write.row);
}

Status LocalPart::make_room(const std::vector<OrderedWrite>& writes) {
  CHECK(writes_.empty());
  for (const OrderedWrite& write : writes) add_write(write);
  Status status = find_gaps();
  if (status.ok()) status = allocate();
  if (!status.ok()) {
    writes_.clear();
    gaps_.clear();
  }
  return status;
}

// Of inserts and unlinks; several keys share a gap header, which is one access.
Status LocalPart::find_gaps() {
  std::vector<LocalKey*> lacking;
  for (LocalWrite& write : writes_) {
    if (write.kind == WriteKind::kUnlink) lacking.push_back(write.key);
  }
  std::vector<KeyWork> found;
  for (LocalKey* key : lacking) {
    KeyWork& work = found.emplace_back();
    work.table = key->name.table;
    work.hash = key->hash;
    work.key = key->name.key;
    work.mode = KeyWork::Mode::kGapOnly;
  }
  RDMACC_RETURN_IF_ERROR(find_keys(stage_, found));
  for (size_t i = 0; i < lacking.size(); i++) lacking[i]->work.gap = found[i].gap;
  for (LocalWrite& write : writes_) {
    if (write.kind == WriteKind::kUpdate) continue;
    const Access& gap = write.key->work.gap;
    if (gap.header.null()) return aborted(AbortReason::kIndexMoved);
    for (Access& known : gaps_) {
      if (known.header == gap.header) write.gap = &known;
    }
    if (write.gap == nullptr) {
      gaps_.push_back(gap);
      write.gap = &gaps_.back();
    }
    write.gap->read = false;
    write.gap->write = true;
  }
  return Status();
}

Status LocalPart::allocate() {
  std::vector<StorageClient::SlotRequest> requests;
  std::vector<LocalWrite*> owners;
  for (LocalWrite& write : writes_) {
    auto table = stage_.table(write.key->name.table);
    if (!table.ok()) return table.status();
    write.record_size = static_cast<uint16_t>((*table)->record_size);
    write.history = static_cast<uint16_t>((*table)->history);
    StorageClient::SlotRequest request{};
    request.table = write.key->name.table;
    request.key_hash = write.key->hash;
    request.node = node_;
    request.want_slot = write.kind == WriteKind::kInsert;
    if (write.record.size() > (*table)->record_size) {
      request.overflow_bytes = static_cast<uint32_t>(round_up(write.record.size(), 8));
    }
    if (!request.want_slot && request.overflow_bytes == 0) continue;
    requests.push_back(request);
    owners.push_back(&write);
  }
  if (requests.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(
      stage_.engine.storage.allocate(requests, stage_.stamps.ctts, stage_.allocation_counters));
  for (size_t i = 0; i < requests.size(); i++) {
    LocalWrite& write = *owners[i];
    if (!requests[i].overflow.null()) {
      write.new_overflow = requests[i].overflow;
      allocated_.push_back({requests[i].overflow, FreeKind::kOverflow});
    }
    if (!requests[i].want_slot) continue;
    allocated_.push_back({requests[i].slot, FreeKind::kSlot});
    write.tuple.header = requests[i].slot;
    write.tuple.table = requests[i].table;
    write.tuple.key_hash = write.key->hash;
    write.tuple.incarnation = requests[i].incarnation;
  }
  return Status();
}

Status LocalPart::lock(std::vector<LockWork>& works) {
  std::unordered_map<const Access*, size_t> work_of;
  for (LocalWrite& write : writes_) {
    if (write.kind != WriteKind::kInsert) {
      LockWork work;
      work.access = &write.tuple;
      works.push_back(std::move(work));
    }
    if (write.gap == nullptr) continue;
    auto [at, fresh] = work_of.try_emplace(write.gap, works.size());
    if (fresh) {
      LockWork work;
      work.access = write.gap;
      works.push_back(std::move(work));
    }
    works[at->second].wishes.push_back(
        EntryWish{write.key->hash, write.tuple.header.offset(), write.kind == WriteKind::kInsert});
  }
  return lock_accesses(stage_, works);
}

// Tuples first, then gap headers: the order in which they are installed.
void LocalPart::build_record(std::vector<LockWork>& works, LogRecord& record) const {
  record.lock_ctts = record.stamp = stage_.stamps.ctts;
  record.protocol = static_cast<uint8_t>(stage_.rules.protocol);
  for (const LocalWrite& from : writes_) {
    Write& write = record.writes.emplace_back();
    write.header = from.tuple.header;
    write.kind = from.kind;
    write.table = from.key->name.table;
    write.key_hash = from.key->hash;
    write.incarnation = from.tuple.incarnation;
    write.overflow = from.new_overflow;
    write.record = from.record;
    write.record_size = from.record_size;
    write.history = from.history;
  }
  for (LockWork& work : works) {
    if (!work.access->gap) continue;
    Write& write = record.writes.emplace_back();
    write.header = work.access->header;
    write.kind = WriteKind::kGap;
    write.table = work.access->table;
    write.key_hash = work.access->key_hash;
    write.incarnation = work.access->incarnation;
    write.entries = std::move(work.entries);
  }
}

Status LocalPart::apply() {
  if (writes_.empty()) return Status();
  std::vector<LockWork> works;
  RDMACC_RETURN_IF_ERROR(lock(works));
  LogRecord record;
  build_record(works, record);
  std::vector<std::byte> encoded;
  encode(record, encoded);
  CHECK(encoded.size() <= kRedoBytes - OrderArea::kBlockHeaderBytes);
  area_.store(area_.layout().order_redo(), OrderArea::make_block(stage_.stamps.ctts, 0, encoded));
  // From here on the request is done: whatever is lacking, it is finished.
  InstallOptions options;
  options.effects = stage_.rules.effects;
  options.guarded = true;
  while (!install(stage_.engine.worker, record, options, stage_.counters).ok()) {
    stage_.engine.worker.scheduler().sleep_for(1'000);
  }
  allocated_.clear();
  free_replaced();
  return Status();
}

void LocalPart::free_replaced() {
  std::vector<StorageClient::FreeRequest> freed;
  for (const LocalWrite& write : writes_) {
    if (!write.old_overflow.null()) {
      freed.push_back({write.old_overflow, FreeKind::kOverflow});
    }
    if (write.kind == WriteKind::kUnlink) {
      freed.push_back({write.tuple.header, FreeKind::kSlot});
    }
  }
  if (freed.empty()) return;
  const Status status =
      stage_.engine.storage.free(freed, stage_.stamps.ctts, stage_.allocation_counters);
  static_cast<void>(status);  // leaks until the node's next start
}

void LocalPart::give_back() {
  if (allocated_.empty()) return;
  const Status status =
      stage_.engine.storage.free(allocated_, stage_.stamps.ctts, stage_.allocation_counters);
  static_cast<void>(status);
  allocated_.clear();
}

}  // namespace rdmacc
