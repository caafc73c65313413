#include "engine/txn/stages/first_look.h"

#include <algorithm>
#include <array>

#include "engine/txn/stages/first_look_at.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/look_in_place.h"
#include "engine/txn/stages/overflow_read.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Neither found nor lost.
bool is_open(const KeyState& key) {
  return key.base == KeyState::Base::kUnknown && key.lost == AbortReason::kNone;
}

uint64_t home_bucket(uint64_t group, const KeyState& key) {
  return bucket_offset(group, home_bucket_of(key.hash));
}

}  // namespace

[[gnu::always_inline]] inline Status FirstLook::run() {
  const bool in_place = context_.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  if (!locate(in_place)) {
    RDMACC_RETURN_IF_ERROR(load_roots());
    // Another coroutine may have found meanwhile that the table is gone: the walk will say so.
    if (!locate(in_place)) return Status();
  }
  if (in_place) {
    if (room_ == nullptr) room_ = context_.arena.allocate(keys_.size() * table_.record_size);
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
  for (const KeyState* key : keys_) {
    const NodeId node = engine.map.primary_of(key->hash);
    if (!TableCache::needs_root(table_, node)) continue;
    RDMACC_RETURN_IF_ERROR(engine.tables.load_root(table_, node, false, context_.counters));
  }
  return Status();
}

// Where each key is to be looked for, in two passes: what the first touches, the second reads. In
// place a bucket is as near as an entry of the location cache. False: a root array is not here.
bool FirstLook::locate(bool in_place) {
  places_.resize(keys_.size(), boost::container::default_init);
  Groups groups;
  if (!find_groups(groups)) return false;
  if (in_place) {
    MappedMemory* const mapped = context_.engine.worker.scheduler().mapped();
    for (size_t i = 0; i < keys_.size(); i++) {
      const GlobalAddress bucket = places_[i].bucket.plus(home_bucket(*groups[i], *keys_[i]));
      places_[i].bucket = bucket;
      if (mapped != nullptr) mapped->prefetch_line(bucket);
    }
    return true;
  }
  LocationCache& locations = context_.engine.locations;
  for (const KeyState* key : keys_) locations.prefetch(key->hash);
  for (size_t i = 0; i < keys_.size(); i++) {
    Place& place = places_[i];
    const uint64_t known_at = locations.find(keys_[i]->hash);
    if (known_at != 0) {
      place = {place.bucket.plus(known_at), {}};
    } else {
      place.bucket = place.bucket.plus(home_bucket(*groups[i], *keys_[i]));
    }
  }
  return true;
}

// Each key's place in its node's root array, and the node as that of a bucket not known yet.
[[gnu::always_inline]] inline bool FirstLook::find_groups(Groups& groups) {
  const PartitionMap map = context_.engine.map;
  const CachedRoot* const roots = table_.roots.data();
  KeyState* const* const keys = keys_.data();
  Place* const places = places_.data();
  for (size_t i = 0, count = keys_.size(); i < count; i++) {
    const uint64_t hash = keys[i]->hash;
    DCHECK(keys[i]->base == KeyState::Base::kUnknown && keys[i]->tuple->header.null());
    const NodeId node = map.primary_of(hash);
    const CachedRoot& root = roots[node];
    if (root.bits == 0 || root.doubtful) [[unlikely]]
      return false;
    places[i] = {{}, GlobalAddress::make(node, 0)};
    groups[i] = root.groups.data() + group_bits_of(hash, root.depth());
    __builtin_prefetch(groups[i]);
  }
  return true;
}

// The home buckets of all keys in one round, then what is chained to those that have no entry.
Status FirstLook::read_buckets() {
  auto* images = context_.arena.allocate_array<Bucket>(keys_.size());
  if (images == nullptr) return out_of_registered_memory();
  DoorbellBatch batch = context_.batch();
  for (uint32_t round = 0; round < kBucketsMax; round++) {
    for (size_t i = 0; i < keys_.size(); i++) {
      if (!places_[i].bucket.null()) batch.read(places_[i].bucket, &images[i], sizeof(Bucket));
    }
    if (batch.empty()) return Status();
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (size_t i = 0; i < keys_.size(); i++) {
      if (!places_[i].bucket.null()) choose_entry(keys_[i]->hash, images[i], places_[i]);
    }
  }
  return Status();
}

// The records of the keys that have somewhere to look, by the protocol's read rule.
Status FirstLook::read_records() {
  CHECK(places_.size() == keys_.size());  // locate() came first
  for (size_t i = 0; i < keys_.size(); i++) {
    if (places_[i].header.null()) continue;
    Access& access = *keys_[i]->tuple;
    access.header = places_[i].header;
    access.table = table_.id;
    access.key_hash = keys_[i]->hash;
    RecordState record;
    record.access = &access;
    record.record_bytes = table_.record_size;
    record.history = table_.history;
    judge_later(*keys_[i], record);
  }
  if (records_.empty()) return Status();
  const size_t bytes_of_each = RecordState::memory_bytes(table_.record_size);
  std::byte* memory = context_.arena.allocate(records_.size() * bytes_of_each);
  if (memory == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    record.use_memory(memory);
    memory += bytes_of_each;
  }
  // What was locked is noted in the accesses, whatever comes of it.
  return drive(context_, context_.rules.read, {records_.data(), records_.size()});
}

// What all that was read comes to.
Status FirstLook::settle() {
  bool all_kept = true;
  for (size_t i = 0; i < records_.size(); i++) {
    const RecordState& record = records_[i];
    KeyState& key = *judged_[i].key;
    if (record.end == RecordState::End::kDone &&
        is_whole(key, record.accepted, record.record, record.record_bytes)) {
      keep(key, record.accepted, *key.tuple);
      context_.engine.locations.put(key.hash, key.tuple->header.offset());
      if (!kept_by_caller_) {
        key.row = row_of(key.key, record.bytes());
        continue;
      }
      memcpy(room_, record.record, record.accepted.length);
      take_room(key, record.accepted.length);
    } else {
      all_kept = false;
    }
  }
  if (all_kept) return Status();
  RDMACC_RETURN_IF_ERROR(read_overflow_blocks());
  for (size_t i = 0; i < records_.size(); i++) {
    const auto [key, record] = judged_[i];
    if (key->base != KeyState::Base::kUnknown) continue;
    if (records_[i].end == RecordState::End::kAbort) {
      key->lost = records_[i].reason;
    } else if (key->overflow != 0 && is_record_of(key->key, record)) {
      keep(*key, records_[i].accepted, *key->tuple);
      key->row = row_of(key->key, record);
      context_.engine.locations.put(key->hash, key->tuple->header.offset());
    }
  }
  for (size_t i = 0; i < records_.size(); i++) {
    // Pending: another one aborted first.
    KeyState& key = *judged_[i].key;
    if (!is_open(key) || records_[i].end == RecordState::End::kPending) continue;
    RDMACC_RETURN_IF_ERROR(give_up(key, records_[i]));
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
    auto& [key, bytes] = judged_[i];
    memcpy(&key->overflow, record.record, sizeof(key->overflow));
    bytes = record.bytes();
    RDMACC_RETURN_IF_ERROR(
        add_overflow_read(context_, key->tuple->header.node(), key->overflow, bytes, batch));
  }
  return batch.execute();
}

// A stale location, an entry with the same tag, or a record that is no row (any more).
Status FirstLook::give_up(KeyState& key, const RecordState& record) {
  key.overflow = 0;
  context_.engine.locations.forget(key.hash);
  if (record.newly_locked && !wanted_by_other(key)) {
    // A lock whose release fails stays noted: the transaction gives it back as it ends.
    const Held held(*key.tuple);
    RDMACC_RETURN_IF_ERROR(release_accesses(context_, std::span(&held, 1), /*certain=*/true));
    // Of others that have met on the header, and that it is no row of either.
    for (const KeyState* other : keys_) {
      if (is_open(*other) && other->tuple->header == held.header) *other->tuple = Access{};
    }
  }
  *key.tuple = Access{};
  return Status();
}

// Two keys of one operation may have met on one header, which is locked once. Shares are counted.
bool FirstLook::wanted_by_other(const KeyState& self) const {
  return self.tuple->locked && std::any_of(keys_.begin(), keys_.end(), [&](const KeyState* other) {
           return other != &self && !is_open(*other) && other->tuple->locked &&
                  other->tuple->header == self.tuple->header;
         });
}

Status look_first(StageContext& context, CachedTable& table, std::span<KeyState* const> keys,
                  FirstLookOut& out) {
  FirstLook first(context, table, keys, out.room);
  const Status status = first.run();
  if (out.room != nullptr) out.room = first.room();
  out.plain = first.plain();
  return status;
}

}  // namespace rdmacc
