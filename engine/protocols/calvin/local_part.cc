#include "engine/protocols/calvin/local_part.h"

#include <map>

#include "engine/txn/stages/install.h"
#include "engine/txn/stages/lock.h"

namespace rdmacc {
namespace {

constexpr uint32_t kReleaseTriesMax = 10'000;
constexpr uint64_t kReleaseRetryUs = 1'000;

}  // namespace

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

Status LocalPart::look(LocalVerdict& verdict) {
  std::vector<KeyWork> works;
  for (const LocalKey& key : keys_) {
    works.push_back(KeyWork::of(key.name.table, key.hash, key.name.key));
  }
  RDMACC_RETURN_IF_ERROR(find_keys(stage_, works));
  for (size_t i = 0; i < works.size(); i++) {
    if (works[i].result == KeyWork::Result::kAborted) return aborted(works[i].reason);
    keys_[i].work = works[i];
  }
  looked_ = true;
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

// By the CPU: nothing else changes headers of this node now.
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
    const bool whole = for_each_entry(at, home, [&](uint64_t entry) {
      const uint64_t tuple = entry_offset(entry);
      if (entry == 0 || !area_.layout().holds_header(tuple)) return true;
      const Header header = region.header(tuple);
      now.add(tuple, header.incarnation, header.wts);
      return true;
    });
    if (!whole) return false;
  }
  return now.digest == group.digest;
}

// Of one chain, empty ones included; `visit` says whether to go on. False: the chain is broken.
bool LocalPart::for_each_entry(uint64_t group, uint32_t home,
                               const std::function<bool(uint64_t)>& visit) const {
  const OwnedRegion& region = area_.region();
  uint64_t bucket = bucket_offset(group, home);
  for (uint32_t links = 0; bucket != 0; links++) {
    if (!area_.layout().holds_bucket(bucket) || links > kChainMax) return false;
    for (uint32_t i = 0; i < kEntriesPerBucket; i++) {
      if (!visit(region.load(bucket + i * sizeof(uint64_t)))) return true;
    }
    bucket = region.load(bucket + offsetof(Bucket, next));
  }
  return true;
}

void LocalPart::add_write(const OrderedWrite& write) {
  const LocalKey* key = touch(write.table, write.key);
  if (key == nullptr) return;
  const KeyWork& found = key->work;
  if (found.result != KeyWork::Result::kFound && write.deleted) return;
  const bool tuple = !found.access.header.null();  // a row, or the tombstone of one
  if (tuple) accesses_.push_back(found.access);
  PlannedWrite& planned = writes_.add(stage_.rules, {key->name.table,
                                                     key->hash,
                                                     key->name.key,
                                                     write.deleted,
                                                     write.row,
                                                     {},
                                                     tuple ? &accesses_.back() : nullptr,
                                                     found.overflow});
  if (planned.kind == WriteKind::kInsert) planned.gap = share_gap(found.gap);
}

// Several keys share a gap header, which is one access.
Access* LocalPart::share_gap(const Access& gap) {
  Access*& known = gap_of_[gap.header.bits];
  if (known == nullptr) {
    known = &accesses_.emplace_back(gap);
    known->read = false;
  }
  return known;
}

Status LocalPart::make_room(const std::vector<OrderedWrite>& writes) {
  CHECK(looked_ && !has_room_ && writes_.empty());
  for (const OrderedWrite& write : writes) add_write(write);
  Status status = find_gaps();
  if (status.ok()) status = writes_.allocate_room(stage_, accesses_);
  has_room_ = status.ok();
  if (!status.ok()) {
    writes_.clear();
    gap_of_.clear();
    accesses_.clear();
  }
  return status;
}

Status LocalPart::find_gaps() {
  std::vector<PlannedWrite*> lacking;
  size_t from = 0;
  std::vector<KeyWork> works = writes_.missing_gaps(from, SIZE_MAX, lacking);
  RDMACC_RETURN_IF_ERROR(find_keys(stage_, works));
  for (size_t i = 0; i < works.size(); i++) {
    if (works[i].gap.header.null()) return aborted(AbortReason::kIndexMoved);
    lacking[i]->gap = share_gap(works[i].gap);
  }
  return Status();
}

// A request that cannot have them is refused. Once it is decided it would wait for memory, and the
// order with it, while memory waits for the end of the transactions in the order.
Status LocalPart::make_entry_room(EntriesWanted& wanted) {
  CHECK(has_room_);
  std::map<uint64_t, PlannedWrite*> inserted;  // by home bucket: one of those that go there
  for (PlannedWrite& write : writes_.all()) {
    if (write.kind != WriteKind::kInsert) continue;
    const uint64_t home = bucket_offset(write.gap->header.offset(), home_bucket_of(write.hash));
    ++wanted[home];
    inserted.emplace(home, &write);
  }
  for (const auto& [home, write] : inserted) {
    const uint32_t bucket = home_bucket_of(write->hash), needed = wanted[home];
    uint32_t empty = 0;
    for_each_entry(write->gap->header.offset(), bucket, [&](uint64_t entry) {
      empty += entry == 0 ? 1 : 0;
      return empty < needed;
    });
    if (empty < needed) RDMACC_RETURN_IF_ERROR(extend(*write->gap, bucket, needed));
  }
  return Status();
}

// The owner chains buckets only for the holder of the group's lock.
Status LocalPart::extend(Access& gap, uint32_t home, uint32_t entries) {
  LockWork lock{.access = &gap};
  Status status = lock_accesses(stage_, {&lock, 1});
  if (status.ok()) {
    status = stage_.engine.storage.extend_bucket(gap.header, home, entries, stage_.stamps.ctts,
                                                 stage_.allocation_counters);
  }
  unlock();
  return status;
}

Status LocalPart::apply() {
  CHECK(has_room_);
  if (writes_.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(lock_accesses(stage_, writes_.plan_locks()));
  CHECK(stage_.stamps.ctts != 0);
  LogRecord record;
  record.lock_ctts = record.stamp = stage_.stamps.ctts;
  record.protocol = static_cast<uint8_t>(stage_.rules.protocol);
  writes_.list_writes(record);
  std::vector<std::byte> encoded;
  encode(record, encoded);
  CHECK(encoded.size() <= kRedoBytes - OrderArea::kBlockHeaderBytes);
  area_.store(area_.layout().order_redo(), OrderArea::make_block(stage_.stamps.ctts, 0, encoded));
  // From here on the request is done: whatever is lacking, it is finished.
  InstallOptions options;
  options.effects = stage_.rules.effects;
  options.guarded = options.underway = true;
  while (!install(stage_.engine.worker, record, options, stage_.counters).ok()) {
    stage_.engine.worker.scheduler().sleep_for(1'000);
  }
  writes_.keep_room();
  writes_.free_replaced(stage_);
  return Status();
}

// Locks, too: the next look-up may lead to other headers, since a group can split meanwhile.
void LocalPart::give_back() {
  // What cannot be given back leaks until the node's next start.
  static_cast<void>(writes_.give_back_room(stage_));
  unlock();
}

void LocalPart::unlock() {
  std::vector<Held> held;
  for (Access& access : accesses_) {
    if (!access.held()) continue;
    held.emplace_back(access);
    access.locked = access.lease_locked = false;
  }
  if (!held.empty()) release(held);
}

// A lock that stays would stop the order at the next request for its row, for ever: registered
// memory is waited for. Verbs of a node to itself fail with the node alone, whose next start
// unlocks.
void LocalPart::release(std::span<const Held> held) {
  bool certain = true;
  for (uint32_t tries = 0; tries < kReleaseTriesMax; tries++) {
    if (release_accesses(stage_, held, certain).ok()) return;
    certain = false;  // some may be released already, and another's by now
    stage_.engine.worker.scheduler().sleep_for(kReleaseRetryUs);
  }
  CHECK(!"the order's locks could not be released");
}

}  // namespace rdmacc
