#include "engine/txn/first_look.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>

#include "engine/txn/drive.h"
#include "engine/txn/lock.h"
#include "engine/txn/overflow_read.h"

namespace rdmacc {
namespace {

// Of one batch; their memory is on the stack.
constexpr size_t kKeysAtOnce = 16;
// Of one chain: a longer one is left to the walk.
constexpr uint32_t kBucketsMax = 8;

struct Look {
  KeyWork* key;
  const CachedTable* table;
  NodeId node;
  GlobalAddress bucket;  // to be read; null: there is none (any more)
};

class FirstLook {
 public:
  FirstLook(StageContext& context, std::span<KeyWork> keys)
      : context_(context), all_(keys), batch_(context.batch()) {}

  Status at(std::span<KeyWork> keys) {
    RDMACC_RETURN_IF_ERROR(locate(keys));
    RDMACC_RETURN_IF_ERROR(read_buckets());
    RDMACC_RETURN_IF_ERROR(take_records());
    if (records_.empty()) return Status();
    const std::span<RecordState> records(records_.data(), records_.size());
    // What was locked is noted in the keys' accesses, whatever comes of it.
    RDMACC_RETURN_IF_ERROR(drive(context_, context_.rules.read, records));
    note_found();
    RDMACC_RETURN_IF_ERROR(read_overflow_blocks());
    return settle();
  }

 private:
  Status locate(std::span<KeyWork> keys);
  Status read_buckets();
  GlobalAddress choose_entry(const Look& look, const Bucket& bucket) const;
  Status take_records();
  void note_found();
  Status read_overflow_blocks();
  Status settle();

  StageContext& context_;
  const std::span<KeyWork> all_;
  DoorbellBatch batch_;
  boost::container::static_vector<Look, kKeysAtOnce> looks_;
  // Of the keys that have somewhere to look.
  boost::container::static_vector<RecordState, kKeysAtOnce> records_;
  boost::container::static_vector<KeyWork*, kKeysAtOnce> key_of_;
};

// Where each key is to be looked for, in two passes: what the first touches, the second reads.
Status FirstLook::locate(std::span<KeyWork> keys) {
  EngineContext& engine = context_.engine;
  looks_.clear();
  records_.clear();
  key_of_.clear();
  CachedTable* table = nullptr;
  for (KeyWork& key : keys) {
    if (key.mode != KeyWork::Mode::kRead) continue;
    if (table == nullptr || table->id != key.table) {
      auto known = context_.table(key.table);
      if (!known.ok()) return known.status();
      table = *known;
    }
    const NodeId node = engine.map.primary_of(key.hash);
    if (TableCache::needs_root(*table, node)) {
      RDMACC_RETURN_IF_ERROR(engine.tables.load_root(*table, node, false, context_.counters));
    }
    looks_.emplace_back(Look{&key, table, node, GlobalAddress{}});
    engine.locations.prefetch(key.hash);
    TableCache::prefetch_group(*table, node, key.hash);
  }
  for (Look& look : looks_) {
    KeyWork& key = *look.key;
    const uint64_t known_at = engine.locations.find(key.hash);
    if (known_at != 0) {
      key.access.header = GlobalAddress::make(look.node, known_at);
      continue;
    }
    // Another coroutine may have found since then that the table is gone: the walk will say so.
    if (look.table->roots[look.node].bits == 0) continue;
    const uint64_t group = TableCache::group_of(*look.table, look.node, key.hash);
    look.bucket = GlobalAddress::make(look.node, bucket_offset(group, home_bucket_of(key.hash)));
    batch_.prefetch(look.bucket, sizeof(Bucket));
  }
  return Status();
}

// The home buckets of all keys in one round, then what is chained to those that have no entry.
[[gnu::flatten]] Status FirstLook::read_buckets() {
  if (looks_.empty()) return Status();
  auto* images = context_.arena.allocate_array<Bucket>(looks_.size());
  if (images == nullptr) return out_of_registered_memory();
  batch_.await_prefetched();
  for (uint32_t round = 0; round < kBucketsMax; round++) {
    for (size_t i = 0; i < looks_.size(); i++) {
      if (!looks_[i].bucket.null()) batch_.read(looks_[i].bucket, &images[i], sizeof(Bucket));
    }
    if (batch_.empty()) return Status();
    RDMACC_RETURN_IF_ERROR(batch_.execute());
    for (size_t i = 0; i < looks_.size(); i++) {
      if (!looks_[i].bucket.null()) looks_[i].bucket = choose_entry(looks_[i], images[i]);
    }
  }
  return Status();
}

// Takes the first entry with the key's tag: if it is another key's, the walk will tell them apart.
// The bucket to be read next; null: none.
GlobalAddress FirstLook::choose_entry(const Look& look, const Bucket& bucket) const {
  const RegionLayout& layout = context_.engine.layout;
  const uint16_t tag = tag_of(look.key->hash);
  for (const uint64_t entry : bucket.entries) {
    const uint64_t offset = entry_offset(entry);
    if (entry_tag(entry) != tag || entry == 0 || !layout.holds_header(offset)) continue;
    look.key->access.header = GlobalAddress::make(look.node, offset);
    return GlobalAddress{};
  }
  // A recycled group's bytes may be anything.
  const bool leads_on = bucket.next != 0 && bucket.next % sizeof(Bucket) == 0 &&
                        bucket.next <= layout.region_bytes - sizeof(Bucket);
  return leads_on ? GlobalAddress::make(look.node, bucket.next) : GlobalAddress{};
}

// The records of the keys that have somewhere to look.
Status FirstLook::take_records() {
  size_t record_bytes = 0;
  for (const Look& look : looks_) {
    KeyWork& key = *look.key;
    if (key.access.header.null()) continue;
    key.access.table = key.table;
    key.access.key_hash = key.hash;
    key_of_.push_back(&key);
    RecordState& record = records_.emplace_back();
    record.access = &key.access;
    record.record_bytes = look.table->record_size;
    record.history = look.table->history;
    record_bytes += record.record_bytes;
  }
  if (records_.empty()) return Status();
  std::byte* bytes = context_.arena.allocate(record_bytes);
  if (bytes == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    record.record = bytes;
    bytes += record.record_bytes;
  }
  return Status();
}

// What is kDone and live is the key's, unless the bytes say otherwise.
void FirstLook::note_found() {
  for (size_t i = 0; i < records_.size(); i++) {
    const RecordState& record = records_[i];
    KeyWork& key = *key_of_[i];
    if (record.end == RecordState::End::kAbort) {
      key.result = KeyWork::Result::kAborted;
      key.reason = record.reason;
    } else if (record.end == RecordState::End::kDone && (record.accepted.flags & kFlagLive) != 0) {
      const bool deleted = (record.accepted.flags & kFlagDeleted) != 0;
      key.result = deleted ? KeyWork::Result::kMissing : KeyWork::Result::kFound;
      key.flags = record.accepted.flags;
      rdmacc::note_read(context_, record, key.access);
      key.record =
          std::string_view(reinterpret_cast<const char*>(record.record), record.accepted.length);
    }
  }
}

Status FirstLook::read_overflow_blocks() {
  Status status;
  for (size_t i = 0; i < records_.size() && status.ok(); i++) {
    KeyWork& key = *key_of_[i];
    const bool read =
        key.result == KeyWork::Result::kFound || key.result == KeyWork::Result::kMissing;
    if (read) {
      status = fetch_overflow(context_, key, records_[i].record_bytes, batch_);
    }
  }
  if (status.ok()) status = batch_.execute();
  if (status.ok()) return status;
  // Lengths that are not checked must not be believed by the caller.
  for (size_t i = 0; i < records_.size(); i++) {
    KeyWork& key = *key_of_[i];
    if (key.result == KeyWork::Result::kAborted) continue;
    key.record = {};
    key.result = KeyWork::Result::kPending;
  }
  return status;
}

// Keeps the keys whose bytes were found; the others are to be walked for.
Status FirstLook::settle() {
  for (size_t i = 0; i < records_.size(); i++) {
    const RecordState& record = records_[i];
    KeyWork& key = *key_of_[i];
    if (key.result == KeyWork::Result::kAborted) continue;
    if (record.end == RecordState::End::kPending) continue;  // another one aborted first
    std::string_view bytes, row;
    if (key.result != KeyWork::Result::kPending && split_record(key.record, bytes, row) &&
        bytes == key.key) {
      context_.engine.locations.put(key.hash, key.access.header.offset());
      continue;
    }
    key.result = KeyWork::Result::kPending;
    key.record = {};
    context_.engine.locations.forget(key.hash);
    const Held held(key.access);
    const bool give_back = record.newly_locked && !wanted_by_other(all_, key);
    key.access = Access{};
    if (give_back) {
      RDMACC_RETURN_IF_ERROR(release_accesses(context_, std::span(&held, 1), /*certain=*/true));
    }
  }
  return Status();
}

}  // namespace

bool wanted_by_other(std::span<const KeyWork> keys, const KeyWork& self) {
  return self.access.locked && std::any_of(keys.begin(), keys.end(), [&](const KeyWork& other) {
           return &other != &self && other.result != KeyWork::Result::kPending &&
                  other.access.locked && other.access.header == self.access.header;
         });
}

Status look_first(StageContext& context, std::span<KeyWork> keys) {
  FirstLook look(context, keys);
  for (size_t begin = 0; begin < keys.size(); begin += kKeysAtOnce) {
    const size_t count = std::min(kKeysAtOnce, keys.size() - begin);
    RDMACC_RETURN_IF_ERROR(look.at(keys.subspan(begin, count)));
    for (const KeyWork& key : keys.subspan(begin, count)) {
      if (key.result == KeyWork::Result::kAborted) return Status();
    }
  }
  return Status();
}

}  // namespace rdmacc
