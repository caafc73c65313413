#include "engine/txn/stages/scan_entries.h"

#include <algorithm>

#include "engine/txn/driver/drive.h"
#include "engine/txn/stages/overflow_read.h"
#include "engine/txn/stages/row_lock.h"
#include "engine/txn/stages/scan_in_place.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr size_t kTuplesPerRound = 256;

// By rules that skip: a record that has gone, is still to come, or that another transaction has
// locked.
bool is_passed_over(const StageContext& context, const RecordState& record_state) {
  return context.rules.skips_locked && (record_state.end != RecordState::End::kDone ||
                                        (record_state.accepted.flags & kFlagLive) == 0 ||
                                        was_skipped(*record_state.snapshot, context.stamps));
}

}  // namespace

Status ScanEntries::read(bool& again) {
  again = false;
  bool read = false;
  if (reads_rows() && offsets_.size() <= kTuplesPerRound) RDMACC_RETURN_IF_ERROR(read_rows(read));
  return read ? Status() : read_tuples(again);
}

// False: not all of them were whole at once, and none is to be used.
Status ScanEntries::read_rows(bool& all_read) {
  CHECK(!context_.rules.locks_what_it_reads());
  work_.tuples.clear();  // of an attempt before
  if (context_.is_cancelled()) return Status(Code::kCancelled);
  all_read = offsets_.empty();
  if (all_read) return Status();
  const uint32_t record_bytes = head_bytes();
  CHECK(record_bytes % 8 == 0 && (record_bytes == 0 || record_bytes >= kRecordSizeMin));
  std::byte* room = nullptr;
  if (record_bytes > 0) {
    room = context_.arena.allocate(record_bytes * offsets_.size());
    if (room == nullptr) return out_of_registered_memory();
  }
  CHECK(work_.rows.empty());
  RowReads reads(work_.node, work_.table, record_bytes, offsets_, room, work_.rows);
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
bool ScanEntries::heads_suffice(uint32_t bytes) const {
  if (bytes == table_.record_size || bytes == 0) return true;
  return std::all_of(work_.rows.begin(), work_.rows.end(), [&](const ScannedRow& row) {
    return (row.flags & kFlagOverflow) != 0 || row.record.size() < bytes ||
           rdmacc::record_bytes(key_bytes_of(row.record.data()), work_.row_bytes_max) <= bytes;
  });
}

Status ScanEntries::read_tuples(bool& again) {
  // What an earlier attempt locked stays in the list, so that it is released with the rest.
  std::erase_if(work_.tuples, [](const ScannedTuple& tuple) { return !tuple.access.held(); });
  for (ScannedTuple& tuple : work_.tuples) tuple.record = {};
  for (size_t begin = 0; begin < offsets_.size() && !again; begin += kTuplesPerRound) {
    const size_t end = std::min(begin + kTuplesPerRound, offsets_.size());
    RDMACC_RETURN_IF_ERROR(read_some(begin, end, again));
    if (work_.result != ScanWork::Result::kPending) return Status();
  }
  return Status();
}

Status ScanEntries::read_some(size_t begin, size_t end, bool& again) {
  CHECK(begin < end && end <= offsets_.size());
  const size_t count = end - begin;
  const size_t first_new = work_.tuples.size();
  std::vector<RecordState> record_states(count);
  work_.tuples.resize(first_new + count);
  for (size_t i = 0; i < count; i++) {
    Access& access = work_.tuples[first_new + i].access;
    access.header = work_.address(offsets_[begin + i]);
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
    if (record_states[i].end == RecordState::End::kAbort)
      return work_.abort(record_states[i].reason);
    const RecordState::Accepted& header = record_states[i].accepted;
    if (is_passed_over(context_, record_states[i])) continue;
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
Status ScanEntries::take_as_stored(size_t begin, bool& again) {
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

Status ScanEntries::fetch_overflow(size_t begin) {
  DoorbellBatch batch = context_.batch();
  for (size_t i = begin; i < work_.tuples.size(); i++) {
    ScannedTuple& tuple = work_.tuples[i];
    RDMACC_RETURN_IF_ERROR(complete(tuple.flags, tuple.record, tuple.overflow, batch));
  }
  return batch.execute();
}

// `record` has the bytes of the slot, and is to have those of the record, once the batch is carried
// out.
Status ScanEntries::complete(uint32_t flags, std::string_view& record, uint64_t& overflow,
                             DoorbellBatch& batch) {
  if ((flags & kFlagOverflow) == 0) {
    if (record.size() <= table_.record_size) return Status();
    return Status(Code::kCorrupt, "a record is longer than its slot");
  }
  memcpy(&overflow, record.data(), sizeof(overflow));
  record = record.substr(0, record_bytes_wanted(work_, record.size()));
  return add_overflow_read(context_, work_.node, overflow, record, batch);
}

}  // namespace rdmacc
