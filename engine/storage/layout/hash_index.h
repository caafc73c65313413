#pragma once
#include "engine/storage/layout/key_hash.h"
#include "engine/storage/layout/tuple.h"
#include "rdma/fabric/verb.h"

// A table's index on one node: extendible hashing over groups, cluster chaining within a group,
// every part reachable by one-sided READs.
//
//   root array   2^depth offsets of groups on the same node, 8 bytes each, chosen by the low
//                `depth` bits of the hash; the directory entry names it. Coordinators cache it.
//   group        gap header (64) | 8 home buckets (64 each)            = 576 bytes
//   bucket       7 entries (8 each) | address of the next bucket (8)   = one cache line
//   entry        tag 16 bits | offset of the tuple's header 48 bits; 0 = empty
//
// The gap header guards its group: absent keys, inserts, unlinks and scans are protocol reads and
// writes of it (docs/protocols.md §2). Its key_hash is the group's bits, its `length` the local
// depth: a key belongs to the group iff group_bits_of(hash, depth) == key_hash, which is how a
// coordinator notices a stale root array. Splitting a group locks its gap header, raises its wts
// and its incarnation, and inherits wts and rts to both halves. wts, incarnation and depth change
// BEFORE an entry leaves the group: a lookup that found nothing is right only if a gap header READ
// after the entries still shows the key's bits and the incarnation seen before them. A lookup that
// found its key needs the tuple alone. SUNDIAL's word is locked and moved on by a split, too.
//
// Writers: entries and gap stamps by the holder of the gap header's lock; chain links, root
// arrays and splits by the owner node alone.

namespace rdmacc {

constexpr uint32_t kInitialDepth = 4;  // 16 groups per node and table: few false conflicts
constexpr uint32_t kDepthMax = 26;
constexpr uint32_t kEntriesPerBucket = 7;
constexpr uint32_t kBucketsPerGroup = 8;
constexpr uint32_t kChainMax = 1u << 20;  // bound of every walk

struct Bucket {
  uint64_t entries[kEntriesPerBucket];
  uint64_t next;  // offset of the chained bucket on the same node, 0 = none
};
static_assert(sizeof(Bucket) == 64);

struct Group {
  Header gap;
  Bucket buckets[kBucketsPerGroup];
};
static_assert(sizeof(Group) == 576);

constexpr uint64_t make_entry(uint64_t hash, uint64_t offset) {
  return (static_cast<uint64_t>(tag_of(hash)) << 48) | offset;
}
constexpr uint64_t entry_offset(uint64_t entry) { return entry & ((1ull << 48) - 1); }
constexpr uint16_t entry_tag(uint64_t entry) { return static_cast<uint16_t>(entry >> 48); }

// Is a gap header, as it was seen, that of the group which holds the table's keys of this hash? An
// entry is placed, cleared or believed to be missing only under a header of which this is true.
constexpr bool claims(const Header& gap, TableId table, uint64_t hash) {
  return gap.table == table && (gap.flags & kFlagGap) != 0 && gap.length <= kDepthMax &&
         gap.key_hash == group_bits_of(hash, gap.length);
}

constexpr uint64_t bucket_offset(uint64_t group, uint32_t bucket) {
  return group + sizeof(Header) + bucket * sizeof(Bucket);
}

// A root array as its directory entry names it: 6 bits of depth, 48 bits of offset.
struct IndexRoot {
  uint64_t bits = 0;
  static IndexRoot make(uint32_t depth, uint64_t offset) {
    return IndexRoot{(static_cast<uint64_t>(depth) << 48) | offset};
  }
  uint32_t depth() const { return static_cast<uint32_t>(bits >> 48) & 63; }
  uint64_t offset() const { return bits & ((1ull << 48) - 1); }
};

}  // namespace rdmacc
