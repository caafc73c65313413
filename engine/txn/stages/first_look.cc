#include "engine/txn/stages/first_look.h"

#include <algorithm>
#include <array>

#include "engine/txn/stages/first_look_at.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/look_in_place.h"
#include "engine/txn/stages/overflow_read.h"
#include "rdma/base/check.h"

namespace rdmacc {

Status FirstLook::run() {
  const bool in_place = context_.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  if (!locate(in_place)) {
    RDMACC_RETURN_IF_ERROR(load_roots());
    // Another coroutine may have found meanwhile that the table is gone: the walk will say so.
    if (!locate(in_place)) return Status();
  }
  if (in_place) {
    if (room_ == nullptr) room_ = context_.arena.allocate(looks_.size() * table_.record_size);
    if (room_ == nullptr) return out_of_registered_memory();
    const StageRule& rule = context_.rules.read;
    const StageRule::Look look = rule.look != nullptr ? rule.look : look_in_place_by<1, Rule>;
    RDMACC_RETURN_IF_ERROR(look(context_, rule.step, *this));
  } else {
    RDMACC_RETURN_IF_ERROR(read_buckets());
    RDMACC_RETURN_IF_ERROR(read_records());
  }
  return records_.empty() ? Status() : settle();
}

Status FirstLook::load_roots() {
  EngineContext& engine = context_.engine;
  for (const SoughtKey& look : looks_) {
    const NodeId node = engine.map.primary_of(look.hash);
    if (!TableCache::needs_root(table_, node)) continue;
    RDMACC_RETURN_IF_ERROR(engine.tables.load_root(table_, node, false, context_.counters));
  }
  return Status();
}

// Where each key is to be looked for, in two passes: what the first touches, the second reads. In
// place a bucket is as near as an entry of the location cache. False: a root array is not here.
bool FirstLook::locate(bool in_place) {
  EngineContext& engine = context_.engine;
  places_.resize(looks_.size(), boost::container::default_init);
  std::array<const uint64_t*, kKeysAtOnce> groups;  // in root arrays
  for (size_t i = 0; i < looks_.size(); i++) {
    const uint64_t hash = looks_[i].hash;
    DCHECK(looks_[i].result == SoughtKey::Result::kOpen && looks_[i].access->header.null());
    const NodeId node = engine.map.primary_of(hash);
    const CachedRoot& root = table_.roots.data()[node];
    if (root.bits == 0 || root.doubtful) [[unlikely]]
      return false;
    places_[i] = {{}, GlobalAddress::make(node, 0)};
    groups[i] = root.groups.data() + group_bits_of(hash, root.depth());
    __builtin_prefetch(groups[i]);
    if (!in_place) engine.locations.prefetch(hash);
  }
  MappedMemory* mapped = engine.worker.scheduler().mapped();
  for (size_t i = 0; i < looks_.size(); i++) {
    Place& place = places_[i];
    const uint64_t hash = looks_[i].hash;
    const uint64_t known_at = in_place ? 0 : engine.locations.find(hash);
    if (known_at != 0) {
      place = {place.bucket.plus(known_at), {}};
      continue;
    }
    place.bucket = place.bucket.plus(bucket_offset(*groups[i], home_bucket_of(hash)));
    if (mapped != nullptr) mapped->prefetch_line(place.bucket);
  }
  return true;
}

// The home buckets of all keys in one round, then what is chained to those that have no entry.
Status FirstLook::read_buckets() {
  auto* images = context_.arena.allocate_array<Bucket>(looks_.size());
  if (images == nullptr) return out_of_registered_memory();
  DoorbellBatch batch = context_.batch();
  for (uint32_t round = 0; round < kBucketsMax; round++) {
    for (size_t i = 0; i < looks_.size(); i++) {
      if (!places_[i].bucket.null()) batch.read(places_[i].bucket, &images[i], sizeof(Bucket));
    }
    if (batch.empty()) return Status();
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (size_t i = 0; i < looks_.size(); i++) {
      if (!places_[i].bucket.null()) choose_entry(looks_[i].hash, images[i], places_[i]);
    }
  }
  return Status();
}

// The records of the keys that have somewhere to look, by the protocol's read rule.
Status FirstLook::read_records() {
  CHECK(places_.size() == looks_.size());  // locate() came first
  for (size_t i = 0; i < looks_.size(); i++) {
    if (places_[i].header.null()) continue;
    Access& access = *looks_[i].access;
    access.header = places_[i].header;
    access.table = table_.id;
    access.key_hash = looks_[i].hash;
    RecordState record;
    record.access = &access;
    record.record_bytes = table_.record_size;
    record.history = table_.history;
    judge_later(looks_[i], record);
  }
  if (records_.empty()) return Status();
  std::byte* memory = context_.arena.allocate(records_.size() * table_.record_size);
  if (memory == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    record.record = memory;
    memory += record.record_bytes;
  }
  // What was locked is noted in the accesses, whatever comes of it.
  return drive(context_, context_.rules.read, {records_.data(), records_.size()});
}

// What all that was read comes to.
Status FirstLook::settle() {
  bool all_kept = true;
  for (size_t i = 0; i < records_.size(); i++) {
    const RecordState& record = records_[i];
    SoughtKey& look = *judged_[i];
    if (record.end == RecordState::End::kDone &&
        is_whole(look, record.accepted, record.record, record.record_bytes)) {
      keep(look, record.accepted, *look.access);
      context_.engine.locations.put(look.hash, look.access->header.offset());
      look.record = record.bytes();
      if (!kept_by_caller_) continue;
      memcpy(room_, look.record.data(), look.record.size());
      take_room(look, record.accepted.length);
    } else {
      all_kept = false;
    }
  }
  if (all_kept) return Status();
  RDMACC_RETURN_IF_ERROR(read_overflow_blocks());
  for (size_t i = 0; i < records_.size(); i++) {
    SoughtKey& look = *judged_[i];
    if (look.result != SoughtKey::Result::kOpen) continue;
    if (records_[i].end == RecordState::End::kAbort) {
      look.result = SoughtKey::Result::kAborted;
      look.reason = records_[i].reason;
    } else if (look.overflow != 0 && is_record_of(look.key, look.record)) {
      keep(look, records_[i].accepted, *look.access);
      context_.engine.locations.put(look.hash, look.access->header.offset());
    }
  }
  for (size_t i = 0; i < records_.size(); i++) {
    // Pending: another one aborted first.
    if (judged_[i]->result != SoughtKey::Result::kOpen ||
        records_[i].end == RecordState::End::kPending) {
      continue;
    }
    RDMACC_RETURN_IF_ERROR(give_up(*judged_[i], records_[i]));
  }
  return Status();
}

Status FirstLook::read_overflow_blocks() {
  DoorbellBatch batch = context_.batch();
  for (size_t i = 0; i < records_.size(); i++) {
    const RecordState& record = records_[i];
    constexpr uint32_t kElsewhere = kFlagLive | kFlagOverflow;
    if (record.end != RecordState::End::kDone ||
        (record.accepted.flags & kElsewhere) != kElsewhere) {
      continue;
    }
    SoughtKey& look = *judged_[i];
    memcpy(&look.overflow, record.record, sizeof(look.overflow));
    look.record = record.bytes();
    RDMACC_RETURN_IF_ERROR(
        add_overflow_read(context_, look.access->header.node(), look.overflow, look.record, batch));
  }
  return batch.execute();
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
    for (const SoughtKey& other : looks_) {
      const bool open = other.result == SoughtKey::Result::kOpen;
      if (open && other.access->header == held.header) *other.access = Access{};
    }
  }
  *look.access = Access{};
  return Status();
}

// Two keys of one operation may have met on one header, which is locked once. Shares are counted.
bool FirstLook::wanted_by_other(const SoughtKey& self) const {
  return self.access->locked &&
         std::any_of(looks_.begin(), looks_.end(), [&](const SoughtKey& other) {
           return &other != &self && other.result != SoughtKey::Result::kOpen &&
                  other.access->locked && other.access->header == self.access->header;
         });
}

Status look_first(StageContext& context, CachedTable& table, std::span<SoughtKey> looks,
                  std::byte*& room) {
  FirstLook first(context, table, looks, room);
  const Status status = first.run();
  if (room != nullptr) room = first.room();
  return status;
}

}  // namespace rdmacc
