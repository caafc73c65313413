#include "engine/txn/stages/group_entries.h"

#include "engine/txn/driver/in_place_rounds.h"

namespace rdmacc {

Status GroupEntries::read() {
  entries_.clear();
  entries_.reserve(kBucketsPerGroup * kEntriesPerBucket);
  RDMACC_RETURN_IF_ERROR(context_.batch().in_place() ? read_home_in_place() : read_home());
  RDMACC_RETURN_IF_ERROR(read_chains());
  std::erase_if(entries_,
                [this](uint64_t offset) { return !context_.engine.layout.holds_header(offset); });
  return Status();
}

Status GroupEntries::read_home() {
  auto* buckets = context_.arena.allocate_array<Bucket>(kBucketsPerGroup);
  if (buckets == nullptr) return out_of_registered_memory();
  DoorbellBatch batch = context_.batch();
  batch.read(group_, &gap_.pre_read, sizeof(Header));
  batch.read(address(bucket_offset(group_.offset(), 0)), buckets,
             sizeof(Bucket) * kBucketsPerGroup);
  batch.read(group_, &gap_.post_read, sizeof(Header), WordOrder::kDescending);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  for (uint32_t b = 0; b < kBucketsPerGroup; b++) chains_[b] = add(buckets[b]);
  return Status();
}

Status GroupEntries::read_home_in_place() {
  return with_port_in_place(context_, [this](auto& port) {
    const auto gap = port.find(group_, sizeof(Group));
    if (port.lost(gap)) return DoorbellBatch::unreachable();
    port.read_line(gap, &gap_.pre_read, WordOrder::kAscending);
    std::array<Bucket, kBucketsPerGroup> buckets;
    port.read(gap, bucket_offset(0, 0), buckets.data(), sizeof(buckets));
    port.read_line(gap, &gap_.post_read, WordOrder::kDescending);
    port.end_round();
    if (port.failed()) return DoorbellBatch::unreachable();
    for (uint32_t b = 0; b < kBucketsPerGroup; b++) chains_[b] = add(buckets[b]);
    return Status();
  });
}

Status GroupEntries::read_chains() {
  Bucket* buckets = nullptr;
  DoorbellBatch batch = context_.batch();
  for (uint32_t round = 0; round < kChainMax; round++) {
    bool chained = false;
    for (uint32_t b = 0; b < kBucketsPerGroup; b++) {
      if (!context_.engine.layout.holds_bucket(chains_[b])) continue;
      if (buckets == nullptr) buckets = context_.arena.allocate_array<Bucket>(kBucketsPerGroup);
      if (buckets == nullptr) return out_of_registered_memory();
      batch.read(address(chains_[b]), &buckets[b], sizeof(Bucket));
      chained = true;
    }
    if (!chained) return Status();
    batch.read(group_, &gap_.post_read, sizeof(Header), WordOrder::kDescending);
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (uint32_t b = 0; b < kBucketsPerGroup; b++) {
      if (context_.engine.layout.holds_bucket(chains_[b])) chains_[b] = add(buckets[b]);
    }
  }
  return Status(Code::kCorrupt, "a bucket chain does not end");
}

// Returns where the bucket's chain goes on. Which places are taken is not to be foretold: what is
// not is written over, without a branch.
uint64_t GroupEntries::add(const Bucket& bucket) {
  std::array<uint64_t, kEntriesPerBucket> taken;
  size_t count = 0;
  for (const uint64_t entry : bucket.entries) {
    taken[count] = entry_offset(entry);
    count += entry != 0 ? 1 : 0;
  }
  for (size_t i = 0; i < count; i++) {
    if (context_.engine.layout.holds_header(taken[i])) entries_.push_back(taken[i]);
  }
  return bucket.next;
}

}  // namespace rdmacc
