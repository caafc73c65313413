#include "engine/storage/owner/group_split.h"

#include <algorithm>

#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {

namespace {
constexpr int kSundialLockTries = 16;
constexpr int kGroupTries = 16;
constexpr uint64_t kStoresPerFlush = 256;
}  // namespace

GroupSplitter::GroupSplitter(Worker& worker, const Topology& topology, const OwnedRegion& region,
                             Arena& arena, Directory& directory)
    : worker_(worker),
      region_(region),
      arena_(arena),
      directory_(directory),
      walk_(region, arena),
      verbs_(region, worker),
      first_thread_(topology.worker_of(region.node())),
      threads_(topology.threads_per_node) {}

uint64_t GroupSplitter::next_ctts(uint64_t larger_than) {
  last_us_ = std::max({last_us_ + 1, worker_.endpoint().now_us(), (larger_than >> 16) + 1});
  return (last_us_ << 16) | worker_.id();
}

bool GroupSplitter::worth_splitting(uint64_t group, uint32_t depth_wanted) const {
  if (walk_.depth_of(group) < depth_wanted) return true;
  uint32_t entries = 0;
  uint32_t in_longest_chain = 0;
  bool full = false;
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    buckets.clear();
    if (!walk_.chain(group, bucket, &buckets)) return false;
    uint32_t used = 0;
    for (const uint64_t entry : walk_.entries(buckets)) used += entry != 0 ? 1 : 0;
    full |= used >= kEntriesPerBucket || buckets.size() > 1;
    in_longest_chain = std::max(in_longest_chain, used);
    entries += used;
    if (full && entries >= kSplitEntriesMin) return true;  // after a load chains are long
  }
  return full && (entries >= kSplitEntriesMin || in_longest_chain > kChainEntriesMax);
}

uint64_t GroupSplitter::before_empty_buckets(uint64_t group, uint32_t bucket,
                                             std::vector<uint64_t>* empty) const {
  BucketChain buckets;
  if (!walk_.chain(group, bucket, &buckets) || buckets.size() == 1) return 0;
  const ChainEntries entries = walk_.entries(buckets);
  size_t used = buckets.size();
  const auto is_empty = [&](size_t i) {
    const auto first = entries.begin() + static_cast<ptrdiff_t>(i * kEntriesPerBucket);
    return std::all_of(first, first + kEntriesPerBucket, [](uint64_t entry) { return entry == 0; });
  };
  while (used > 1 && is_empty(used - 1)) --used;
  const auto end = entries.begin() + static_cast<ptrdiff_t>(used * kEntriesPerBucket);
  // Where all before it are full, one stays for the next insert.
  if (used < buckets.size() && std::find(entries.begin(), end, 0u) == end) ++used;
  if (used == buckets.size()) return 0;
  empty->insert(empty->end(), buckets.begin() + static_cast<ptrdiff_t>(used), buckets.end());
  return buckets[used - 1];
}

bool GroupSplitter::has_empty_buckets(uint64_t group) const {
  std::vector<uint64_t> empty;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    if (before_empty_buckets(group, bucket, &empty) != 0) return true;
  }
  return false;
}

// A transaction that has asked for room and then aborted leaves empty buckets. They go, so that the
// transaction that needs them asks again, and the group is queued again: it would grow unnoticed.
// No entry moves, so that readers need not know.
void GroupSplitter::cut_empty_buckets(uint64_t group, std::vector<uint64_t>* cut) {
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    const uint64_t last = before_empty_buckets(group, bucket, cut);
    if (last != 0) verbs_.store(last + offsetof(Bucket, next), 0);
  }
}

GroupSplitter::Outcome GroupSplitter::split(TableId id, uint64_t group, uint32_t depth_wanted,
                                            uint64_t* sibling) {
  const auto still_there = [&] {
    return directory_.live(id) != nullptr && arena_.in_use(PageKind::kGroup, group) &&
           region_.table_of(group) == id;
  };
  if (!still_there()) return Outcome::kNotNeeded;
  // The lock first: the group of a transaction that has made room, but not yet put its entries
  // there, seems to need no split.
  if (region_.lock_of(group) != 0) return Outcome::kBusy;
  if (!worth_splitting(group, depth_wanted) && !has_empty_buckets(group)) {
    return Outcome::kNotNeeded;
  }
  if (!verbs_.prepare().ok()) return Outcome::kFailed;
  const Header before = region_.header(group);
  const uint64_t ctts = next_ctts(std::max(before.wts, before.rts));
  if (!lock(group, ctts)) return Outcome::kBusy;
  CHECK(still_there());  // drops wait for the split
  StructureSpan span(observer_, StructureChange::kSplit, id);
  const bool worth = worth_splitting(group, depth_wanted);
  const Outcome outcome = worth ? split_locked(id, group, ctts, sibling) : Outcome::kNotNeeded;
  std::vector<uint64_t> cut;
  if (!worth) cut_empty_buckets(group, &cut);
  if (outcome == Outcome::kFailed) note_change(observer_, StructureChange::kFull, id);
  if (outcome == Outcome::kSplit) {
    span.happened();
  } else {
    unlock(group, lease_end(region_.load(group + offsetof(Header, sundial))), verbs_);
    if (!verbs_.flush().ok()) return Outcome::kFailed;
    for (const uint64_t bucket : cut) CHECK(arena_.retire(bucket));
  }
  return outcome;
}

// Both locks: the lock word and, since SUNDIAL's transactions read nothing else, its own.
bool GroupSplitter::lock(uint64_t header, uint64_t ctts) {
  uint64_t seen = 0;
  if (!verbs_.compare_swap(header + kOffsetOfLock, 0, ctts, &seen).ok() || seen != 0) return false;
  const uint64_t word = header + offsetof(Header, sundial);
  uint64_t expected = region_.load(word);
  for (int i = 0; i < kSundialLockTries && !sundial_locked(expected); ++i) {
    // The lease's end would be lost with the delta, so it is kept in place of wts.
    const uint64_t locked = sundial_locked_word(sundial_rts_bound(expected), worker_.id());
    if (!verbs_.compare_swap(word, expected, locked, &seen).ok()) return false;
    if (seen == expected) return true;
    expected = seen;  // a lease was renewed, or another CAS was first
  }
  verbs_.store(header + kOffsetOfLock, 0);
  static_cast<void>(verbs_.flush());
  return false;
}

void GroupSplitter::unlock(uint64_t header, uint64_t sundial_wts, OwnerWriter& writer) const {
  writer.store(header + offsetof(Header, sundial), sundial_unlocked_word(sundial_wts, 0));
  writer.store(header + kOffsetOfLock, 0);
}

GroupSplitter::Outcome GroupSplitter::split_locked(TableId id, uint64_t group, uint64_t ctts,
                                                   uint64_t* sibling) {
  const uint32_t depth = walk_.depth_of(group);
  const IndexRoot root{directory_.live(id)->root};
  if (depth >= kDepthMax || depth > root.depth()) return Outcome::kNotNeeded;
  if (depth == root.depth() && !grow_root(id).ok()) return Outcome::kFailed;
  const Result<uint64_t> fresh = allocate_locked_group(ctts);
  if (!fresh.ok()) return Outcome::kFailed;
  const Halves halves = halves_of(id, group, fresh.value());
  KeptEntries kept;
  const Status filled = fill_sibling(halves, kept);
  if (!filled.ok()) {
    abandon_sibling(fresh.value());
    return filled.code() == Code::kCorrupt ? Outcome::kNotNeeded : Outcome::kFailed;
  }
  *sibling = fresh.value();
  // A failure here is that of the node itself; opening it again finishes the split.
  return finish(halves, verbs_, &kept).ok() ? Outcome::kSplit : Outcome::kFailed;
}

Status GroupSplitter::grow_root(TableId id) {
  const IndexRoot old{directory_.live(id)->root};
  const uint64_t slots = 1ull << old.depth();
  const Result<uint64_t> array = arena_.allocate(PageKind::kArray, slots * 2 * 8);
  if (!array.ok()) return array.status();
  for (uint64_t i = 0; i < slots; ++i) {
    const uint64_t group = region_.load(walk_.root_slot(old, i));
    region_.store(array.value() + 8 * i, group);
    region_.store(array.value() + 8 * (slots + i), group);
  }
  directory_.set_root(id, IndexRoot::make(old.depth() + 1, array.value()).bits);
  CHECK(arena_.retire(old.offset()));
  note_change(observer_, StructureChange::kRootGrowth, id);
  return Status();
}

// A free group's header may be locked for a moment by a transaction with a stale address.
Result<uint64_t> GroupSplitter::allocate_locked_group(uint64_t ctts) {
  for (int i = 0; i < kGroupTries; ++i) {
    const Result<uint64_t> group = arena_.allocate(PageKind::kGroup, sizeof(Group));
    if (!group.ok() || lock(group.value(), ctts)) return group;
    CHECK(arena_.retire(group.value()));
  }
  return Status(Code::kNoSpace, "no unlocked group");
}

uint64_t GroupSplitter::lease_end(uint64_t sundial) const {
  const bool ours = sundial_locked(sundial) && own_worker(sundial & kSundialDeltaMax);
  return ours ? sundial_wts(sundial) : sundial_rts_bound(sundial);
}

GroupSplitter::Halves GroupSplitter::halves_of(TableId id, uint64_t group, uint64_t sibling) {
  const Header low = region_.header(group), high = region_.header(sibling);
  Halves halves{id, group, sibling, low.length, 0, 0};
  halves.stamp = next_ctts(std::max({low.wts, low.rts, low.lock, high.wts, high.rts, high.lock}));
  halves.sundial_wts = std::max(lease_end(low.sundial), lease_end(high.sundial)) + 1;
  return halves;
}

// Nothing else changes the entries of the group, which is locked, before what has moved leaves it:
// so each is looked at once, though its header lies elsewhere.
Status GroupSplitter::fill_sibling(const Halves& halves, KeptEntries& kept) {
  const uint64_t sibling = halves.sibling;
  const uint64_t bits = region_.load(halves.group) | 1ull << halves.depth;
  region_.bump_incarnation(sibling, halves.table);
  region_.store(sibling, bits);
  region_.store(sibling + kOffsetOfLength, pack_words(halves.depth + 1, kFlagGap));
  region_.store(sibling + kOffsetOfWts, halves.stamp);
  region_.store(sibling + kOffsetOfRts, halves.stamp);
  region_.store(sibling + offsetof(Header, sundial),
                sundial_locked_word(halves.sundial_wts, worker_.id()));
  BucketChain buckets;
  ChainEntries moved;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    if (!walk_.chain(halves.group, bucket, &buckets)) return Status(Code::kCorrupt, "chain");
    moved.clear();
    const ChainEntries entries = walk_.entries(buckets);
    kept[bucket] = entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      const uint64_t entry = entries[i];
      walk_.prefetch_slot_ahead(entries, i);
      if (entry == 0 || !arena_.is_unit(PageKind::kSlot, entry_offset(entry))) continue;
      const uint64_t hash = region_.load(entry_offset(entry));
      if (group_bits_of(hash, halves.depth + 1) != bits) continue;
      moved.push_back(entry);
      kept[bucket][i] = 0;
    }
    RDMACC_RETURN_IF_ERROR(fill_chain(bucket_offset(sibling, bucket), moved));
  }
  return Status();
}

Status GroupSplitter::fill_chain(uint64_t home, const ChainEntries& entries) {
  uint64_t bucket = home;
  for (size_t i = 0; i < entries.size(); ++i) {
    const size_t within = i % kEntriesPerBucket;
    if (i > 0 && within == 0) {
      const Result<uint64_t> next = arena_.allocate(PageKind::kBucket, sizeof(Bucket));
      if (!next.ok()) return next.status();
      region_.store(bucket + offsetof(Bucket, next), next.value());
      bucket = next.value();
    }
    region_.store(bucket + 8 * within, entries[i]);
  }
  return Status();
}

void GroupSplitter::abandon_sibling(uint64_t sibling) {
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    walk_.chain(sibling, bucket, &buckets);
    for (size_t i = 1; i < buckets.size(); ++i) CHECK(arena_.retire(buckets[i]));
  }
  region_.bump_incarnation(sibling, kNoTable);
  unlock(sibling, lease_end(region_.load(sibling + offsetof(Header, sundial))), verbs_);
  CHECK(arena_.retire(sibling));
}

// Ascending, so that the lowest slot, by which loops over the root array recognise a group, is
// the first to name the sibling.
void GroupSplitter::publish(const Halves& halves, OwnerWriter& writer) const {
  const IndexRoot root{directory_.live(halves.table)->root};
  const uint64_t first = region_.load(halves.group) | 1ull << halves.depth;
  uint64_t stores = 0;
  for (uint64_t i = first; i < 1ull << root.depth(); i += 2ull << halves.depth) {
    writer.store(walk_.root_slot(root, i), halves.sibling);
    if (++stores % kStoresPerFlush == 0) static_cast<void>(writer.flush());
  }
}

Status GroupSplitter::finish(const Halves& halves, OwnerWriter& writer, const KeptEntries* kept) {
  CHECK((kept == nullptr) == writer.opens_node());
  const uint64_t group = halves.group;
  publish(halves, writer);
  const uint64_t identity = region_.load(group + kOffsetOfIdentity);
  writer.store(group + kOffsetOfWts, halves.stamp);
  writer.store(group + kOffsetOfIdentity, identity + (1ull << 32));
  writer.store(group + kOffsetOfLength, pack_words(halves.depth + 1, kFlagGap));
  RDMACC_RETURN_IF_ERROR(writer.flush());
  StructureSpan span(observer_, StructureChange::kClean, halves.table);
  std::vector<uint64_t> cut;
  KeptEntries opened;
  if (kept == nullptr) opened = kept_of_opened(group);
  clean(group, writer, kept != nullptr ? *kept : opened, &cut);
  unlock(halves.sibling, halves.sundial_wts, writer);
  unlock(group, halves.sundial_wts, writer);
  RDMACC_RETURN_IF_ERROR(writer.flush());
  span.happened();
  for (const uint64_t bucket : cut) arena_.retire(bucket);
  return Status();
}

}  // namespace rdmacc
