#include "engine/txn/stages/bucket_walk.h"

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

struct Image {
  Header pre_read, post_read;
  Bucket bucket;
};

void note_entries(BucketWalk& walk, const RegionLayout& layout, uint64_t bucket_at,
                  const Bucket& bucket) {
  for (uint32_t i = 0; i < kEntriesPerBucket; i++) {
    const uint64_t entry = bucket.entries[i];
    if (walk.all_entries) walk.places.push_back({bucket_at + i * 8, entry});
    if (entry != 0 && entry_tag(entry) == walk.tag && layout.holds_header(entry_offset(entry))) {
      walk.candidates.push_back(entry_offset(entry));
    }
  }
}

}  // namespace

Status walk_buckets(StageContext& context, std::span<BucketWalk> walks) {
  CHECK(!walks.empty());
  auto* images = context.arena.allocate_array<Image>(walks.size());
  if (images == nullptr) return out_of_registered_memory();
  boost::container::small_vector<uint64_t, 4> at(
      walks.size());  // offset of the bucket to read next; 0 = ended
  size_t open = walks.size();
  for (size_t i = 0; i < walks.size(); i++) {
    DCHECK(!walks[i].group.null() && walks[i].bucket < kBucketsPerGroup);
    at[i] = bucket_offset(walks[i].group.offset(), walks[i].bucket);
    walks[i].candidates.clear();
    walks[i].places.clear();
  }
  DoorbellBatch batch = context.batch();
  for (uint32_t round = 0; open > 0; round++) {
    if (round > kChainMax) return Status(Code::kCorrupt, "a bucket chain does not end");
    if (context.is_cancelled()) return Status(Code::kCancelled);
    for (size_t i = 0; i < walks.size(); i++) {
      if (at[i] == 0) continue;
      const GlobalAddress group = walks[i].group;
      if (round == 0) batch.read(group, &images[i].pre_read, sizeof(Header));
      batch.read(GlobalAddress::make(group.node(), at[i]), &images[i].bucket, sizeof(Bucket));
      batch.read(group, &images[i].post_read, sizeof(Header), WordOrder::kDescending);
    }
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (size_t i = 0; i < walks.size(); i++) {
      if (at[i] == 0) continue;
      note_entries(walks[i], context.engine.layout, at[i], images[i].bucket);
      walks[i].pre_read = images[i].pre_read;
      walks[i].post_read = images[i].post_read;
      at[i] = images[i].bucket.next;
      // A recycled group's bytes may be anything; its gap headers will differ, but the walk must
      // not follow them out of the region.
      if (!context.engine.layout.holds_bucket(at[i])) at[i] = 0;
      if (at[i] == 0) open--;
    }
  }
  return Status();
}

}  // namespace rdmacc
