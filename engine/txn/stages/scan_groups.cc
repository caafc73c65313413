#include "engine/txn/stages/scan_groups.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/txn/driver/drive.h"
#include "engine/txn/stages/group_entries.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/scan_entries.h"
#include "engine/txn/stages/scan_slots.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr int kScanAttemptsMax = 200;
// In place: how many groups' buckets, and tuples, are on their way while one is read.
constexpr size_t kBucketsAhead = 6, kEntriesAhead = 2;

// One group while it is scanned.
class GroupScan {
 public:
  GroupScan(StageContext& context, ScanWork& work, CachedTable& table, size_t tuples_max)
      : context_(context),
        work_(work),
        table_(table),
        tuples_max_(tuples_max),
        entries_(context, work, table) {}

  // Its header and buckets are on their way when begin() comes. Inlined by force, as all that only
  // prefetches (mapped_memory.h): GCC 12 drops a call of it.
  [[gnu::always_inline]] void prefetch() {
    if (TableCache::needs_root(table_, work_.node)) return;
    const uint64_t group = TableCache::group_of(table_, work_.node, work_.range.bits);
    DoorbellBatch batch = context_.batch();
    batch.prefetch(work_.address(group), sizeof(Header));
    if (work_.part == ScanWork::Part::kGapHeader) return;
    batch.prefetch(work_.address(bucket_offset(group, 0)), sizeof(Bucket) * kBucketsPerGroup);
  }
  // Reads the entries, so that what they name is on its way when finish() comes. For rules that
  // lock nothing: what other groups end with leaves nothing behind here.
  Status begin() {
    CHECK(!context_.rules.locks_what_it_reads());
    // Twice: a rule may have to raise the header's rts first.
    for (int look = 0; look < 2 && !entries_known_; look++) {
      RDMACC_RETURN_IF_ERROR(find_entries());
      if (work_.result != ScanWork::Result::kPending) return Status();
    }
    if (entries_known_) entries_.prefetch();
    return Status();
  }
  Status finish() {
    for (int attempt = 0; attempt < kScanAttemptsMax; attempt++) {
      if (context_.is_cancelled()) return Status(Code::kCancelled);
      if (attempt > 1) context_.backoff(attempt);
      if (work_.result == ScanWork::Result::kPending && !entries_known_) {
        RDMACC_RETURN_IF_ERROR(find_entries());
      }
      if (work_.result != ScanWork::Result::kPending) return Status();
      if (!std::exchange(entries_known_, false)) continue;
      if (tuples_max_ != 0 && entries_.offsets().size() > tuples_max_) {
        work_.result = ScanWork::Result::kTooLarge;
        return Status();
      }
      bool again = false;
      RDMACC_RETURN_IF_ERROR(entries_.read(again));
      if (again) continue;
      if (work_.result == ScanWork::Result::kPending) work_.result = ScanWork::Result::kDone;
      return Status();
    }
    return work_.abort(AbortReason::kReadUnstable);
  }

 private:
  Status find_entries();
  Status locate();
  Status lock_gap();
  Status read_entries();
  Status judge_gap(bool& stable);

  // A node that splits the group, or cleans in it, moves its entries. A number of readers is no
  // lock.
  bool owner_works_on(const Header& gap) const {
    return locked_exclusively(gap.lock) &&
           context_.engine.topology.is_node_worker(worker_of_ctts(gap.lock));
  }

  StageContext& context_;
  ScanWork& work_;
  CachedTable& table_;
  const size_t tuples_max_;
  bool located_ = false;
  bool entries_known_ = false;  // entries_ are those of the group as its gap header was judged
  HeaderSnapshot* snapshot_ = nullptr;
  ScanEntries entries_;
};

// One try: entries_known_, unless the group is locked, is being changed or is none of this range's.
Status GroupScan::find_entries() {
  entries_known_ = false;
  RDMACC_RETURN_IF_ERROR(locate());
  if (work_.result != ScanWork::Result::kPending || !located_) return Status();
  if (context_.rules.locks_what_it_reads() && !work_.gap.held()) {
    RDMACC_RETURN_IF_ERROR(lock_gap());
    if (work_.result != ScanWork::Result::kPending || !work_.gap.held()) return Status();
  }
  if (work_.part == ScanWork::Part::kGapHeader) {
    snapshot_->post_read = snapshot_->pre_read;
  } else {
    RDMACC_RETURN_IF_ERROR(read_entries());
  }
  return judge_gap(entries_known_);
}

// Reads the gap header that the cached root names for the range, to learn what it covers.
Status GroupScan::locate() {
  located_ = work_.gap.held();
  if (located_) return Status();
  RDMACC_RETURN_IF_ERROR(
      context_.engine.tables.load_root(table_, work_.node, false, context_.counters));
  const GlobalAddress group =
      work_.address(TableCache::group_of(table_, work_.node, work_.range.bits));
  if (snapshot_ == nullptr) snapshot_ = context_.arena.allocate_array<HeaderSnapshot>(1);
  if (snapshot_ == nullptr) return out_of_registered_memory();
  DoorbellBatch batch = context_.batch();
  batch.read(group, &snapshot_->pre_read, sizeof(Header));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  const Header& gap = snapshot_->pre_read;
  const bool right = gap.table == work_.table && (gap.flags & kFlagGap) != 0 &&
                     gap.length <= kDepthMax && gap.length >= work_.range.depth &&
                     group_bits_of(gap.key_hash, work_.range.depth) == work_.range.bits &&
                     gap.key_hash == group_bits_of(gap.key_hash, gap.length);
  if (!right) {
    return context_.engine.tables.load_root(table_, work_.node, true, context_.counters);
  }
  if (gap.length > work_.range.depth) {
    work_.result = ScanWork::Result::kSplit;
    work_.gap = Access{};  // as an earlier look may have read it: its halves are read instead
    return Status();
  }
  work_.gap = gap_as_seen(group, gap);
  located_ = true;
  return Status();
}

Status GroupScan::lock_gap() {
  CHECK(!work_.gap.held() && !work_.gap.header.null());
  RecordState record;
  record.access = &work_.gap;
  RDMACC_RETURN_IF_ERROR(drive(context_, context_.rules.read, std::span(&record, 1)));
  if (record.end == RecordState::End::kAbort) return work_.abort(record.reason);
  if (record.end == RecordState::End::kStale && record.newly_locked) {
    const Held held(work_.gap);
    RDMACC_RETURN_IF_ERROR(release_accesses(context_, std::span(&held, 1), true));
    work_.gap = Access{};
  }
  if (record.end == RecordState::End::kDone) note_read(context_, record.accepted, work_.gap);
  return Status();
}

// All entries of the group, between pre-read and post-read of its gap header.
Status GroupScan::read_entries() {
  CHECK(!work_.gap.header.null());
  if (snapshot_ == nullptr) snapshot_ = context_.arena.allocate_array<HeaderSnapshot>(1);
  if (snapshot_ == nullptr) return out_of_registered_memory();
  return GroupEntries(context_, work_.gap.header, *snapshot_, entries_.offsets()).read();
}

// The gap header's read rule over both of its reads; under two-phase locking the transaction holds
// its lock. What the rule wants to change first is changed, and the entries are read once more.
Status GroupScan::judge_gap(bool& stable) {
  stable = work_.gap.held();
  if (stable) return Status();
  if (!same_identity(work_.gap, snapshot_->pre_read) ||
      !same_identity(work_.gap, snapshot_->post_read)) {
    return Status();
  }
  if (context_.rules.reads_as_stored &&
      (owner_works_on(snapshot_->pre_read) || owner_works_on(snapshot_->post_read))) {
    return Status();
  }
  const Step step = context_.judge_gap(snapshot_->pre_read, snapshot_->post_read);
  if (step.verdict == Verdict::kTry) {
    CHECK((step.verbs & kCas) != 0);
    DoorbellBatch batch = context_.batch();
    batch.compare_swap(work_.gap.header.plus(step.word), step.expected, step.desired,
                       &snapshot_->cas_seen);
    return batch.execute();
  }
  if (step.verdict == Verdict::kAbort) return work_.abort(step.reason);
  stable = step.verdict == Verdict::kDone;
  if (stable) {
    context_.note_gap_read(work_.gap, snapshot_->pre_read, snapshot_->post_read, step);
  }
  return Status();
}

}  // namespace

// Group by group. In place, and under rules that lock nothing, the cache misses of one overlap with
// the work on the one before: a group's entries are read while the tuples before are, and its
// buckets are fetched one group earlier still.
Status scan_groups(StageContext& context, std::span<ScanWork> groups, size_t tuples_max) {
  if (!groups.empty() && groups.front().part == ScanWork::Part::kSlots) {
    return scan_slots(context, groups);
  }
  const bool ahead = context.batch().in_place() && !context.rules.locks_what_it_reads();
  std::deque<GroupScan> scans;
  for (ScanWork& work : groups) {
    CHECK(work.result == ScanWork::Result::kPending);
    auto table = context.table(work.table);
    if (!table.ok()) return table.status();
    GroupScan& scan = scans.emplace_back(context, work, **table, tuples_max);
    if (ahead && scans.size() <= kBucketsAhead) scan.prefetch();
  }
  size_t begun = 0;
  for (size_t i = 0; i < groups.size(); i++) {
    if (ahead && i + kBucketsAhead < scans.size()) scans[i + kBucketsAhead].prefetch();
    while (ahead && begun < scans.size() && begun <= i + kEntriesAhead) {
      RDMACC_RETURN_IF_ERROR(scans[begun++].begin());
    }
    RDMACC_RETURN_IF_ERROR(scans[i].finish());
    if (groups[i].result == ScanWork::Result::kAborted) return Status();
  }
  return Status();
}

}  // namespace rdmacc
