#include "engine/txn/stages/first_look.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>

#include "engine/txn/driver/drive.h"
#include "engine/txn/rule/record_bytes.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/overflow_read.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Of one batch; their memory is on the stack.
constexpr size_t kKeysAtOnce = 16;
// Of one chain: a longer one is left to the walk.
constexpr uint32_t kBucketsMax = 8;

template <typename T>
using OfBatch = boost::container::static_vector<T, kKeysAtOnce>;

class FirstLook {
 public:
  FirstLook(StageContext& context, std::span<SoughtKey> all)
      : context_(context), all_(all), batch_(context.batch()) {}

  Status at(std::span<SoughtKey> looks) {
    CHECK(looks.size() <= kKeysAtOnce);
    RDMACC_RETURN_IF_ERROR(locate(looks));
    RDMACC_RETURN_IF_ERROR(read_buckets(looks));
    return read_records(looks);
  }

 private:
  // Where a key is looked for.
  struct Place {
    const CachedTable* table;
    NodeId node;
    GlobalAddress bucket;  // to be read; null: there is none (any more)
  };

  Status locate(std::span<SoughtKey> looks);
  Status read_buckets(std::span<SoughtKey> looks);
  GlobalAddress choose_entry(const SoughtKey& look, NodeId node, const Bucket& bucket) const;
  Status read_records(std::span<SoughtKey> looks);
  bool keep_if_whole(size_t i);
  Status settle_others();
  Status read_overflow_blocks();
  void keep(SoughtKey& look, const RecordState& record);
  Status give_up(SoughtKey& look, const RecordState& record);
  bool wanted_by_other(const SoughtKey& self) const;

  StageContext& context_;
  const std::span<SoughtKey> all_;
  DoorbellBatch batch_;
  OfBatch<Place> places_;
  OfBatch<RecordState> records_;  // of those that have somewhere to look
  OfBatch<SoughtKey*> read_;      // of each record
};

// Where each key is to be looked for, in two passes: what the first touches, the second reads.
Status FirstLook::locate(std::span<SoughtKey> looks) {
  EngineContext& engine = context_.engine;
  places_.clear();
  CachedTable* table = nullptr;
  for (const SoughtKey& look : looks) {
    DCHECK(look.result == SoughtKey::Result::kOpen && look.access->header.null());
    if (table == nullptr || table->id != look.table) {
      auto known = context_.table(look.table);
      if (!known.ok()) return known.status();
      table = *known;
    }
    const NodeId node = engine.map.primary_of(look.hash);
    if (TableCache::needs_root(*table, node)) {
      RDMACC_RETURN_IF_ERROR(engine.tables.load_root(*table, node, false, context_.counters));
    }
    CHECK(node < table->roots.size());
    places_.emplace_back(Place{table, node, GlobalAddress{}});
    engine.locations.prefetch(look.hash);
    TableCache::prefetch_group(*table, node, look.hash);
  }
  for (size_t i = 0; i < looks.size(); i++) {
    Place& place = places_[i];
    const uint64_t hash = looks[i].hash;
    const uint64_t known_at = engine.locations.find(hash);
    if (known_at != 0) {
      looks[i].access->header = GlobalAddress::make(place.node, known_at);
      continue;
    }
    // Another coroutine may have found since then that the table is gone: the walk will say so.
    if (place.table->roots[place.node].bits == 0) continue;
    const uint64_t group = TableCache::group_of(*place.table, place.node, hash);
    place.bucket = GlobalAddress::make(place.node, bucket_offset(group, home_bucket_of(hash)));
    batch_.prefetch(place.bucket, sizeof(Bucket));
  }
  return Status();
}

// The home buckets of all keys in one round, then what is chained to those that have no entry.
[[gnu::flatten]] Status FirstLook::read_buckets(std::span<SoughtKey> looks) {
  auto* images = context_.arena.allocate_array<Bucket>(looks.size());
  if (images == nullptr) return out_of_registered_memory();
  batch_.await_prefetched();
  for (uint32_t round = 0; round < kBucketsMax; round++) {
    for (size_t i = 0; i < looks.size(); i++) {
      if (!places_[i].bucket.null()) batch_.read(places_[i].bucket, &images[i], sizeof(Bucket));
    }
    if (batch_.empty()) return Status();
    RDMACC_RETURN_IF_ERROR(batch_.execute());
    for (size_t i = 0; i < looks.size(); i++) {
      Place& place = places_[i];
      if (!place.bucket.null()) place.bucket = choose_entry(looks[i], place.node, images[i]);
    }
  }
  return Status();
}

// Takes the first entry with the key's tag: if it is another key's, the walk will tell them apart.
// The bucket to be read next; null: none.
GlobalAddress FirstLook::choose_entry(const SoughtKey& look, NodeId node,
                                      const Bucket& bucket) const {
  DCHECK(look.access->header.null());
  const RegionLayout& layout = context_.engine.layout;
  const uint16_t tag = tag_of(look.hash);
  for (const uint64_t entry : bucket.entries) {
    const uint64_t offset = entry_offset(entry);
    if (entry_tag(entry) != tag || entry == 0 || !layout.holds_header(offset)) continue;
    look.access->header = GlobalAddress::make(node, offset);
    return GlobalAddress{};
  }
  // A recycled group's bytes may be anything.
  return layout.holds_bucket(bucket.next) ? GlobalAddress::make(node, bucket.next)
                                          : GlobalAddress{};
}

// The records of the keys that have somewhere to look, by the protocol's read rule.
Status FirstLook::read_records(std::span<SoughtKey> looks) {
  records_.clear();
  read_.clear();
  size_t bytes = 0;
  for (size_t i = 0; i < looks.size(); i++) {
    Access& access = *looks[i].access;
    if (access.header.null()) continue;
    access.table = looks[i].table;
    access.key_hash = looks[i].hash;
    RecordState& record = records_.emplace_back();
    record.access = &access;
    record.record_bytes = places_[i].table->record_size;
    record.history = places_[i].table->history;
    bytes += record.record_bytes;
    read_.push_back(&looks[i]);
  }
  if (records_.empty()) return Status();
  std::byte* memory = context_.arena.allocate(bytes);
  if (memory == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    record.record = memory;
    memory += record.record_bytes;
  }
  // What was locked is noted in the accesses, whatever comes of it.
  RDMACC_RETURN_IF_ERROR(drive(context_, context_.rules.read, {records_.data(), records_.size()}));
  bool all_kept = true;
  for (size_t i = 0; i < records_.size(); i++) all_kept = keep_if_whole(i) && all_kept;
  return all_kept ? Status() : settle_others();
}

// The usual case: the key's record, whole in its slot.
inline bool FirstLook::keep_if_whole(size_t i) {
  const RecordState& record = records_[i];
  SoughtKey& look = *read_[i];
  DCHECK(look.result == SoughtKey::Result::kOpen);
  if (record.end != RecordState::End::kDone ||
      (record.accepted.flags & (kFlagLive | kFlagOverflow)) != kFlagLive ||
      record.accepted.length > record.record_bytes) {
    return false;
  }
  look.record = record.bytes();
  if (!is_record_of(look.key, look.record)) return false;
  keep(look, record);
  return true;
}

void FirstLook::keep(SoughtKey& look, const RecordState& record) {
  const bool deleted = (record.accepted.flags & kFlagDeleted) != 0;
  look.result = deleted ? SoughtKey::Result::kMissing : SoughtKey::Result::kFound;
  note_read(context_, record, *look.access);
  context_.engine.locations.put(look.hash, look.access->header.offset());
}

Status FirstLook::settle_others() {
  RDMACC_RETURN_IF_ERROR(read_overflow_blocks());
  for (size_t i = 0; i < records_.size(); i++) {
    SoughtKey& look = *read_[i];
    if (look.result != SoughtKey::Result::kOpen) continue;
    if (records_[i].end == RecordState::End::kAbort) {
      look.result = SoughtKey::Result::kAborted;
      look.reason = records_[i].reason;
    } else if (look.overflow != 0 && is_record_of(look.key, look.record)) {
      keep(look, records_[i]);
    }
  }
  for (size_t i = 0; i < records_.size(); i++) {
    // Pending: another one aborted first.
    if (read_[i]->result != SoughtKey::Result::kOpen ||
        records_[i].end == RecordState::End::kPending) {
      continue;
    }
    RDMACC_RETURN_IF_ERROR(give_up(*read_[i], records_[i]));
  }
  return Status();
}

Status FirstLook::read_overflow_blocks() {
  for (size_t i = 0; i < records_.size(); i++) {
    const RecordState& record = records_[i];
    constexpr uint32_t kElsewhere = kFlagLive | kFlagOverflow;
    if (record.end != RecordState::End::kDone ||
        (record.accepted.flags & kElsewhere) != kElsewhere) {
      continue;
    }
    SoughtKey& look = *read_[i];
    memcpy(&look.overflow, record.record, sizeof(look.overflow));
    look.record = record.bytes();
    RDMACC_RETURN_IF_ERROR(add_overflow_read(context_, look.access->header.node(), look.overflow,
                                             look.record, batch_));
  }
  return batch_.execute();
}

// A stale location, an entry with the same tag, or a record that is no row (any more).
Status FirstLook::give_up(SoughtKey& look, const RecordState& record) {
  look.record = {};
  look.overflow = 0;
  context_.engine.locations.forget(look.hash);
  if (record.newly_locked && !wanted_by_other(look)) {
    // A lock whose release fails stays noted: the transaction gives it back as it ends.
    const Held held(*look.access);
    RDMACC_RETURN_IF_ERROR(release_accesses(context_, std::span(&held, 1), /*certain=*/true));
    // Of others that have met on the header, and that it is no row of either.
    for (const SoughtKey& other : all_) {
      const bool open = other.result == SoughtKey::Result::kOpen;
      if (open && other.access->header == held.header) *other.access = Access{};
    }
  }
  *look.access = Access{};
  return Status();
}

// Two keys of one operation may have met on one header, which is locked once. Shares are counted.
bool FirstLook::wanted_by_other(const SoughtKey& self) const {
  return self.access->locked && std::any_of(all_.begin(), all_.end(), [&](const SoughtKey& other) {
           return &other != &self && other.result != SoughtKey::Result::kOpen &&
                  other.access->locked && other.access->header == self.access->header;
         });
}

}  // namespace

Status look_first(StageContext& context, std::span<SoughtKey> looks) {
  CHECK(!looks.empty());
  FirstLook first(context, looks);
  for (size_t begin = 0; begin < looks.size(); begin += kKeysAtOnce) {
    const size_t count = std::min(kKeysAtOnce, looks.size() - begin);
    RDMACC_RETURN_IF_ERROR(first.at(looks.subspan(begin, count)));
    for (const SoughtKey& look : looks.subspan(begin, count)) {
      if (look.result == SoughtKey::Result::kAborted) return Status();
    }
  }
  return Status();
}

}  // namespace rdmacc
