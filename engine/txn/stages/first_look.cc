#include "engine/txn/stages/first_look.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>

#include "engine/txn/stages/candidates.h"
#include "rdma/base/check.h"

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
    CHECK(keys.size() <= kKeysAtOnce);
    RDMACC_RETURN_IF_ERROR(locate(keys));
    RDMACC_RETURN_IF_ERROR(read_buckets());
    return read_records();
  }

 private:
  Status locate(std::span<KeyWork> keys);
  Status read_buckets();
  GlobalAddress choose_entry(const Look& look, const Bucket& bucket) const;
  Status read_records();

  StageContext& context_;
  const std::span<KeyWork> all_;
  DoorbellBatch batch_;
  boost::container::static_vector<Look, kKeysAtOnce> looks_;
};

// Where each key is to be looked for, in two passes: what the first touches, the second reads.
Status FirstLook::locate(std::span<KeyWork> keys) {
  EngineContext& engine = context_.engine;
  looks_.clear();
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
  DCHECK(look.key->access.header.null());
  const RegionLayout& layout = context_.engine.layout;
  const uint16_t tag = tag_of(look.key->hash);
  for (const uint64_t entry : bucket.entries) {
    const uint64_t offset = entry_offset(entry);
    if (entry_tag(entry) != tag || entry == 0 || !layout.holds_header(offset)) continue;
    look.key->access.header = GlobalAddress::make(look.node, offset);
    return GlobalAddress{};
  }
  // A recycled group's bytes may be anything.
  return layout.holds_bucket(bucket.next) ? GlobalAddress::make(look.node, bucket.next)
                                          : GlobalAddress{};
}

// The records of the keys that have somewhere to look.
Status FirstLook::read_records() {
  boost::container::static_vector<Candidate, kKeysAtOnce> candidates;
  for (const Look& look : looks_) {
    if (!look.key->access.header.null()) candidates.push_back({look.key, look.table});
  }
  if (candidates.empty()) return Status();
  return read_candidates(context_, all_, {candidates.data(), candidates.size()});
}

}  // namespace

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
