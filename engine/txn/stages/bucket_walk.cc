#include "engine/txn/stages/bucket_walk.h"

#include "engine/txn/driver/in_place_rounds.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr const char* kEndlessChain = "a bucket chain does not end";
static_assert(sizeof(Bucket) == kCacheLineBytes);

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

Status walk_posted(StageContext& context, std::span<BucketWalk> walks) {
  auto* images = context.arena.allocate_array<Image>(walks.size());
  if (images == nullptr) return out_of_registered_memory();
  boost::container::small_vector<uint64_t, 4> at(
      walks.size());  // offset of the bucket to read next; 0 = ended
  size_t open = walks.size();
  for (size_t i = 0; i < walks.size(); i++) {
    at[i] = bucket_offset(walks[i].group.offset(), walks[i].bucket);
  }
  DoorbellBatch batch = context.batch();
  for (uint32_t round = 0; open > 0; round++) {
    if (round > kChainMax) return Status(Code::kCorrupt, kEndlessChain);
    if (context.is_cancelled()) return Status(Code::kCancelled);
    for (size_t i = 0; i < walks.size(); i++) {
      if (at[i] == 0) continue;
      const GlobalAddress group = walks[i].group;
      if (round == 0) batch.read(group, &images[i].pre_read, sizeof(Header));
      if (walks[i].header_only) continue;
      batch.read(GlobalAddress::make(group.node(), at[i]), &images[i].bucket, sizeof(Bucket));
      batch.read(group, &images[i].post_read, sizeof(Header), WordOrder::kDescending);
    }
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (size_t i = 0; i < walks.size(); i++) {
      if (at[i] == 0) continue;
      if (walks[i].header_only) {
        walks[i].pre_read = walks[i].post_read = images[i].pre_read;
        at[i] = 0;
        open--;
        continue;
      }
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

// One after the other, since there is nothing to wait for.
Status walk_in_place(StageContext& context, std::span<BucketWalk> walks) {
  const RegionLayout& layout = context.engine.layout;
  return with_port_in_place(context, [&](auto& port) {
    for (BucketWalk& walk : walks) {
      const auto group = port.find_within(walk.group, sizeof(Header));
      if (port.lost(group)) return DoorbellBatch::unreachable();
      if (context.is_cancelled()) return Status(Code::kCancelled);
      port.read_line(group, &walk.pre_read, WordOrder::kAscending);
      if (walk.header_only) {
        if (port.failed()) return DoorbellBatch::unreachable();
        walk.post_read = walk.pre_read;
        continue;
      }
      uint64_t bucket_at = bucket_offset(walk.group.offset(), walk.bucket);
      for (uint32_t length = 0; bucket_at != 0; length++) {
        if (length > kChainMax) return Status(Code::kCorrupt, kEndlessChain);
        const auto place =
            port.find_within(GlobalAddress::make(walk.group.node(), bucket_at), sizeof(Bucket));
        Bucket bucket;
        port.read_line(place, &bucket, WordOrder::kAscending);
        port.read_line(group, &walk.post_read, WordOrder::kDescending);
        if (port.failed()) return DoorbellBatch::unreachable();
        note_entries(walk, layout, bucket_at, bucket);
        bucket_at = layout.holds_bucket(bucket.next) ? bucket.next : 0;
      }
    }
    port.end_round();
    return Status();
  });
}

}  // namespace

Status walk_buckets(StageContext& context, std::span<BucketWalk> walks) {
  CHECK(!walks.empty());
  for (BucketWalk& walk : walks) {
    CHECK(!walk.group.null() && walk.bucket < kBucketsPerGroup);
    CHECK(!(walk.header_only && walk.all_entries));
    walk.candidates.clear();
    walk.places.clear();
  }
  return context.batch().in_place() ? walk_in_place(context, walks) : walk_posted(context, walks);
}

}  // namespace rdmacc
