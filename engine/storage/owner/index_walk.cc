#include "engine/storage/owner/index_walk.h"

namespace rdmacc {

bool IndexWalk::root_valid(IndexRoot root) const {
  if (root.depth() > kDepthMax) return false;
  const uint64_t bytes = 8ull << root.depth();
  for (const PageKind kind : {PageKind::kArray, PageKind::kRun}) {
    if (arena_.is_unit(kind, root.offset())) return arena_.unit_bytes(root.offset()) >= bytes;
  }
  return false;
}

uint64_t IndexWalk::group_at(IndexRoot root, uint64_t i) const {
  CHECK(i < 1ull << root.depth());
  const uint64_t group = region_.load(root_slot(root, i));
  return arena_.is_unit(PageKind::kGroup, group) ? group : 0;
}

uint64_t IndexWalk::group_first_at(IndexRoot root, uint64_t i) const {
  const uint64_t group = group_at(root, i);
  if (group == 0 || region_.load(group) != i) return 0;
  const uint32_t depth = depth_of(group);
  return depth <= kDepthMax && i < 1ull << depth ? group : 0;
}

bool IndexWalk::chain(uint64_t group, uint32_t bucket, BucketChain* buckets) const {
  CHECK(bucket < kBucketsPerGroup);
  buckets->assign(1, bucket_offset(group, bucket));
  while (true) {
    const uint64_t next = region_.load(buckets->back() + offsetof(Bucket, next));
    if (next == 0) return true;
    if (!arena_.is_unit(PageKind::kBucket, next) || buckets->size() >= kChainMax) return false;
    buckets->push_back(next);
  }
}

ChainEntries IndexWalk::entries(const BucketChain& buckets) const {
  ChainEntries found(buckets.size() * kEntriesPerBucket, boost::container::default_init);
  for (size_t i = 0; i < buckets.size(); ++i) {
    region_.load_words(buckets[i], &found[i * kEntriesPerBucket], kEntriesPerBucket);
  }
  return found;
}

void IndexWalk::prefetch_bucket_of(IndexRoot root, uint64_t slot) const {
  if (!root_valid(root)) return;
  const uint64_t hash = region_.load(slot);
  const uint64_t group = region_.load(root_slot(root, group_bits_of(hash, root.depth())));
  region_.prefetch_header(bucket_offset(group, home_bucket_of(hash)));
}

bool IndexWalk::for_each_entry(uint64_t group, const std::function<void(uint64_t)>& visit) const {
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    if (!chain(group, bucket, &buckets)) return false;
    for (const uint64_t entry : entries(buckets)) {
      if (entry != 0) visit(entry);
    }
  }
  return true;
}

bool IndexWalk::linked(IndexRoot root, uint64_t slot) const {
  if (!root_valid(root)) return false;
  const uint64_t hash = region_.load(slot);
  const uint64_t group = group_at(root, group_bits_of(hash, root.depth()));
  if (group == 0) return false;
  // Along the chain without a list of it: this is asked of each slot that is freed.
  uint64_t bucket = bucket_offset(group, home_bucket_of(hash));
  for (uint32_t i = 0; i < kChainMax; ++i) {
    for (uint32_t k = 0; k < kEntriesPerBucket; ++k) {
      if (entry_offset(region_.load(bucket + 8 * k)) == slot) return true;
    }
    bucket = region_.load(bucket + offsetof(Bucket, next));
    if (!arena_.is_unit(PageKind::kBucket, bucket)) return false;  // 0: the chain's end
  }
  return false;
}

}  // namespace rdmacc
