#include "engine/txn/stages/scan_groups.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/txn/driver/drive.h"
#include "engine/txn/stages/group_entries.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/overflow_read.h"
#include "engine/txn/stages/row_lock.h"
#include "engine/txn/stages/scan_in_place.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr int kAttemptsMax = 200;
constexpr size_t kTuplesPerRound = 256;
// In place: how many groups' buckets, and tuples, are on their way while one is read.
constexpr size_t kBucketsAhead = 6, kEntriesAhead = 2;

// One group while it is scanned.
class GroupScan {
 public:
  GroupScan(StageContext& context, GroupWork& work, CachedTable& table, size_t tuples_max)
      : context_(context), work_(work), table_(table), tuples_max_(tuples_max) {}

  // Its header and buckets are on their way when begin() comes. Inlined by force, as all that only
  // prefetches (mapped_memory.h): GCC 12 drops a call of it.
  [[gnu::always_inline]] void prefetch() {
    if (TableCache::needs_root(table_, work_.node)) return;
    const uint64_t group = TableCache::group_of(table_, work_.node, work_.range.bits);
    DoorbellBatch batch = context_.batch();
    batch.prefetch(address(group), sizeof(Header));
    batch.prefetch(address(bucket_offset(group, 0)), sizeof(Bucket) * kBucketsPerGroup);
  }
  // Reads the entries, so that what they name is on its way when finish() comes. For rules that
  // lock nothing: what other groups end with leaves nothing behind here.
  Status begin() {
    CHECK(!context_.rules.locks_what_it_reads());
    // Twice: a rule may have to raise the header's rts first.
    for (int look = 0; look < 2 && !entries_known_; look++) {
      RDMACC_RETURN_IF_ERROR(find_entries());
      if (work_.result != GroupWork::Result::kPending) return Status();
    }
    if (entries_known_) prefetch_tuples();
    return Status();
  }
  Status finish() {
    for (int attempt = 0; attempt < kAttemptsMax; attempt++) {
      if (context_.is_cancelled()) return Status(Code::kCancelled);
      if (attempt > 1) context_.backoff(attempt);
      if (work_.result == GroupWork::Result::kPending && !entries_known_) {
        RDMACC_RETURN_IF_ERROR(find_entries());
      }
      if (work_.result != GroupWork::Result::kPending) return Status();
      if (!std::exchange(entries_known_, false)) continue;
      if (tuples_max_ != 0 && entries_.size() > tuples_max_) {
        work_.result = GroupWork::Result::kTooLarge;
        return Status();
      }
      bool read = false, again = false;
      if (reads_rows() && entries_.size() <= kTuplesPerRound) {
        RDMACC_RETURN_IF_ERROR(read_rows(read));
      }
      if (!read) RDMACC_RETURN_IF_ERROR(read_tuples(again));
      if (again) continue;
      if (work_.result == GroupWork::Result::kPending) work_.result = GroupWork::Result::kDone;
      return Status();
    }
    return fail(AbortReason::kReadUnstable);
  }

 private:
  Status fail(AbortReason reason) {
    work_.result = GroupWork::Result::kAborted;
    work_.reason = reason;
    return Status();
  }
  GlobalAddress address(uint64_t offset) const { return GlobalAddress::make(work_.node, offset); }
  bool reads_rows() const {
    return work_.takes_rows && context_.rules.read.scan != nullptr &&
           context_.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  }
  // Of each record that read_rows() reads.
  uint32_t head_bytes() const {
    return work_.headers_only ? 0 : std::min(table_.record_size, work_.record_head_bytes);
  }
  Status find_entries();
  [[gnu::always_inline]] void prefetch_tuples() {
    const size_t bytes = sizeof(Header) + (reads_rows() ? head_bytes() : table_.record_size);
    DoorbellBatch batch = context_.batch();
    for (const uint64_t entry : entries_) batch.prefetch(address(entry), bytes);
  }
  Status locate();
  Status lock_gap();
  Status read_entries();
  Status judge_gap(bool& stable);
  Status read_rows(bool& all_read);
  bool heads_suffice(uint32_t bytes) const;
  Status read_tuples(bool& again);
  Status read_some(size_t begin, size_t end, bool& again);
  Status fetch_overflow(size_t begin);
  Status complete(uint32_t flags, std::string_view& record, uint64_t& overflow,
                  DoorbellBatch& batch);
  Status take_as_stored(size_t begin, bool& again);
  // A node that splits the group, or cleans in it, moves its entries. A number of readers is no
  // lock.
  bool owner_works_on(const Header& gap) const {
    return locked_exclusively(gap.lock) &&
           context_.engine.topology.is_node_worker(worker_of_ctts(gap.lock));
  }
  // By rules that skip: a record that has gone, is still to come, or that another transaction has
  // locked.
  bool passed_over(const RecordState& record_state) const {
    return context_.rules.skips_locked && (record_state.end != RecordState::End::kDone ||
                                           (record_state.accepted.flags & kFlagLive) == 0 ||
                                           was_skipped(*record_state.snapshot, context_.stamps));
  }

  StageContext& context_;
  GroupWork& work_;
  CachedTable& table_;
  const size_t tuples_max_;
  bool located_ = false;
  bool entries_known_ = false;  // entries_ are those of the group as its gap header was judged
  HeaderSnapshot* snapshot_ = nullptr;
  std::vector<uint64_t> entries_;
};

// One try: entries_known_, unless the group is locked, is being changed or is none of this range's.
Status GroupScan::find_entries() {
  entries_known_ = false;
  RDMACC_RETURN_IF_ERROR(locate());
  if (work_.result != GroupWork::Result::kPending || !located_) return Status();
  if (context_.rules.locks_what_it_reads() && !work_.gap.held()) {
    RDMACC_RETURN_IF_ERROR(lock_gap());
    if (work_.result != GroupWork::Result::kPending || !work_.gap.held()) return Status();
  }
  RDMACC_RETURN_IF_ERROR(read_entries());
  return judge_gap(entries_known_);
}

// Reads the gap header that the cached root names for the range, to learn what it covers.
Status GroupScan::locate() {
  located_ = work_.gap.held();
  if (located_) return Status();
  RDMACC_RETURN_IF_ERROR(
      context_.engine.tables.load_root(table_, work_.node, false, context_.counters));
  const GlobalAddress group = address(TableCache::group_of(table_, work_.node, work_.range.bits));
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
    work_.result = GroupWork::Result::kSplit;
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
  if (record.end == RecordState::End::kAbort) return fail(record.reason);
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
  return GroupEntries(context_, work_.gap.header, *snapshot_, entries_).read();
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
  if (step.verdict == Verdict::kAbort) return fail(step.reason);
  stable = step.verdict == Verdict::kDone;
  if (stable) {
    context_.note_gap_read(work_.gap, snapshot_->pre_read, snapshot_->post_read, step);
  }
  return Status();
}

// False: not all of them were whole at once, and none is to be used.
Status GroupScan::read_rows(bool& all_read) {
  CHECK(!context_.rules.locks_what_it_reads());
  work_.tuples.clear();  // of an attempt before
  if (context_.is_cancelled()) return Status(Code::kCancelled);
  all_read = entries_.empty();
  if (all_read) return Status();
  const uint32_t record_bytes = head_bytes();
  CHECK(record_bytes % 8 == 0 && (record_bytes == 0 || record_bytes >= kRecordSizeMin));
  std::byte* room = nullptr;
  if (record_bytes > 0) {
    room = context_.arena.allocate(record_bytes * entries_.size());
    if (room == nullptr) return out_of_registered_memory();
  }
  CHECK(work_.rows.empty());
  RowReads reads(work_.node, work_.table, record_bytes, entries_, room, work_.rows);
  RDMACC_RETURN_IF_ERROR(context_.rules.read.scan(context_, context_.rules.read.step, reads));
  all_read = reads.all_read() && heads_suffice(record_bytes);
  if (!all_read) work_.rows.clear();
  if (work_.headers_only) return Status();
  DoorbellBatch batch = context_.batch();
  for (ScannedRow& row : work_.rows) {
    RDMACC_RETURN_IF_ERROR(complete(row.flags, row.record, row.overflow, batch));
  }
  return batch.execute();
}

// Of rows that were read so far: what is wanted of each is there.
bool GroupScan::heads_suffice(uint32_t bytes) const {
  if (bytes == table_.record_size || bytes == 0) return true;
  return std::all_of(work_.rows.begin(), work_.rows.end(), [&](const ScannedRow& row) {
    return (row.flags & kFlagOverflow) != 0 || row.record.size() < bytes ||
           rdmacc::record_bytes(key_bytes_of(row.record.data()), work_.row_bytes_max) <= bytes;
  });
}

Status GroupScan::read_tuples(bool& again) {
  // What an earlier attempt locked stays in the list, so that it is released with the rest.
  std::erase_if(work_.tuples, [](const ScannedTuple& tuple) { return !tuple.access.held(); });
  for (ScannedTuple& tuple : work_.tuples) tuple.record = {};
  for (size_t begin = 0; begin < entries_.size() && !again; begin += kTuplesPerRound) {
    const size_t end = std::min(begin + kTuplesPerRound, entries_.size());
    RDMACC_RETURN_IF_ERROR(read_some(begin, end, again));
    if (work_.result != GroupWork::Result::kPending) return Status();
  }
  return Status();
}

Status GroupScan::read_some(size_t begin, size_t end, bool& again) {
  CHECK(begin < end && end <= entries_.size());
  const size_t count = end - begin;
  const size_t first_new = work_.tuples.size();
  std::vector<RecordState> record_states(count);
  work_.tuples.resize(first_new + count);
  for (size_t i = 0; i < count; i++) {
    Access& access = work_.tuples[first_new + i].access;
    access.header = address(entries_[begin + i]);
    access.table = work_.table;
    access.tag_only = true;
    record_states[i].access = &access;
    record_states[i].record_bytes = table_.record_size;
    record_states[i].history = table_.history;
    std::byte* memory = context_.arena.allocate(RecordState::memory_bytes(table_.record_size));
    if (memory == nullptr) return out_of_registered_memory();
    record_states[i].use_memory(memory);
  }
  RDMACC_RETURN_IF_ERROR(drive(context_, context_.rules.read, record_states));
  for (size_t i = 0; i < count; i++) {
    ScannedTuple& tuple = work_.tuples[first_new + i];
    if (record_states[i].end == RecordState::End::kAbort) return fail(record_states[i].reason);
    const RecordState::Accepted& header = record_states[i].accepted;
    if (passed_over(record_states[i])) continue;
    if (record_states[i].end != RecordState::End::kDone || (header.flags & kFlagLive) == 0) {
      again = true;  // unlinked since the entry was read: the gap header has changed
      continue;
    }
    tuple.access.tag_only = false;
    tuple.access.key_hash = header.key_hash;
    note_read(context_, record_states[i].accepted, tuple.access);
    tuple.flags = header.flags;
    tuple.record =
        std::string_view(reinterpret_cast<const char*>(record_states[i].record), header.length);
  }
  if (again) return Status();
  if (context_.rules.reads_as_stored) return take_as_stored(first_new, again);
  const Status fetched = fetch_overflow(first_new);
  if (!fetched.ok()) {
    // Lengths that are not checked must not be believed by the caller.
    for (ScannedTuple& tuple : work_.tuples) tuple.record = {};
  }
  return fetched;
}

// Rows that are being installed may be torn: where the block is, and whether there is one. What
// has the header's key is the row before, the row after, or a mixture that the caller allows for.
Status GroupScan::take_as_stored(size_t begin, bool& again) {
  const Status fetched = fetch_overflow(begin);
  if (!fetched.ok() && fetched.code() != Code::kCorrupt) return fetched;
  for (size_t i = begin; fetched.ok() && i < work_.tuples.size(); i++) {
    const ScannedTuple& tuple = work_.tuples[i];
    std::string_view key, row;
    if (!split_record(tuple.record, key, row) ||
        hash_key(work_.table, key) != tuple.access.key_hash) {
      again = true;
    }
  }
  if (!fetched.ok()) again = true;
  if (!again) return Status();
  for (ScannedTuple& tuple : work_.tuples) tuple.record = {};
  return Status();
}

Status GroupScan::fetch_overflow(size_t begin) {
  DoorbellBatch batch = context_.batch();
  for (size_t i = begin; i < work_.tuples.size(); i++) {
    ScannedTuple& tuple = work_.tuples[i];
    RDMACC_RETURN_IF_ERROR(complete(tuple.flags, tuple.record, tuple.overflow, batch));
  }
  return batch.execute();
}

// `record` has the bytes of the slot, and is to have those of the record, once the batch is carried
// out.
Status GroupScan::complete(uint32_t flags, std::string_view& record, uint64_t& overflow,
                           DoorbellBatch& batch) {
  if ((flags & kFlagOverflow) == 0) {
    if (record.size() <= table_.record_size) return Status();
    return Status(Code::kCorrupt, "a record is longer than its slot");
  }
  memcpy(&overflow, record.data(), sizeof(overflow));
  record = record.substr(0, record_bytes_wanted(work_, record.size()));
  return add_overflow_read(context_, work_.node, overflow, record, batch);
}

}  // namespace

size_t record_bytes_wanted(const GroupWork& group, size_t record_bytes) {
  const uint64_t wanted = rdmacc::record_bytes(kKeyBytesMax, group.row_bytes_max);
  return std::min<uint64_t>(record_bytes, wanted);
}

// Group by group. In place, and under rules that lock nothing, the cache misses of one overlap with
// the work on the one before: a group's entries are read while the tuples before are, and its
// buckets are fetched one group earlier still.
Status scan_groups(StageContext& context, std::span<GroupWork> groups, size_t tuples_max) {
  const bool ahead = context.batch().in_place() && !context.rules.locks_what_it_reads();
  std::deque<GroupScan> scans;
  for (GroupWork& work : groups) {
    CHECK(work.result == GroupWork::Result::kPending);
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
    if (groups[i].result == GroupWork::Result::kAborted) return Status();
  }
  return Status();
}

}  // namespace rdmacc
