#include "engine/txn/stages/candidates.h"

#include <algorithm>

#include "engine/txn/driver/drive.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/overflow_read.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

class CandidateReader {
 public:
  CandidateReader(StageContext& context, std::span<const KeyWork> all,
                  std::span<const Candidate> candidates)
      : context_(context), all_(all), candidates_(candidates), records_(candidates.size()) {}

  Status run() {
    DCHECK(!records_.empty());
    RDMACC_RETURN_IF_ERROR(take_memory());
    // What was locked is noted in the keys' accesses, whatever comes of it.
    RDMACC_RETURN_IF_ERROR(
        drive(context_, context_.rules.read, {records_.data(), records_.size()}));
    for (size_t i = 0; i < records_.size(); i++) note_found(i);
    RDMACC_RETURN_IF_ERROR(read_overflow_blocks());
    for (size_t i = 0; i < records_.size(); i++) RDMACC_RETURN_IF_ERROR(settle(i));
    return Status();
  }

 private:
  Status take_memory();
  void note_found(size_t i);
  Status read_overflow_blocks();
  Status add_overflow_read_of(size_t i, DoorbellBatch& batch);
  static void forget(KeyWork& work) {
    work.result = KeyWork::Result::kPending;
    work.overflow = 0;
    work.record = {};
  }
  Status settle(size_t i);
  bool wanted_by_other(const KeyWork& self) const;

  KeyWork& key(size_t i) const { return *candidates_[i].key; }

  StageContext& context_;
  const std::span<const KeyWork> all_;
  const std::span<const Candidate> candidates_;
  boost::container::small_vector<RecordState, 16> records_;
};

Status CandidateReader::take_memory() {
  size_t bytes_of_all = 0;
  for (size_t i = 0; i < records_.size(); i++) {
    KeyWork& work = key(i);
    DCHECK(work.result == KeyWork::Result::kPending && !work.access.header.null());
    work.access.table = work.table;
    work.access.key_hash = work.hash;
    records_[i].access = &work.access;
    records_[i].record_bytes = candidates_[i].table->record_size;
    records_[i].history = candidates_[i].table->history;
    bytes_of_all += RecordState::memory_bytes(records_[i].record_bytes);
  }
  std::byte* memory = context_.arena.allocate(bytes_of_all);
  if (memory == nullptr) return out_of_registered_memory();
  for (RecordState& record : records_) {
    record.use_memory(memory);
    memory += RecordState::memory_bytes(record.record_bytes);
  }
  return Status();
}

// What is kDone and live is the key's, unless the bytes say otherwise.
void CandidateReader::note_found(size_t i) {
  const RecordState& record = records_[i];
  KeyWork& work = key(i);
  if (record.end == RecordState::End::kAbort) {
    work.result = KeyWork::Result::kAborted;
    work.reason = record.reason;
  } else if (record.end == RecordState::End::kDone && (record.accepted.flags & kFlagLive) != 0) {
    const bool deleted = (record.accepted.flags & kFlagDeleted) != 0;
    work.result = deleted ? KeyWork::Result::kMissing : KeyWork::Result::kFound;
    note_read(context_, record.accepted, work.access);
    work.record = record.bytes();
  }
}

// If the record is elsewhere.
Status CandidateReader::add_overflow_read_of(size_t i, DoorbellBatch& batch) {
  const RecordState& record = records_[i];
  KeyWork& work = key(i);
  if ((record.accepted.flags & kFlagOverflow) == 0) {
    if (record.accepted.length <= record.record_bytes) return Status();
    return Status(Code::kCorrupt, "a record is longer than its slot");
  }
  memcpy(&work.overflow, record.record, sizeof(work.overflow));
  return add_overflow_read(context_, work.access.header.node(), work.overflow, work.record, batch);
}

Status CandidateReader::read_overflow_blocks() {
  DoorbellBatch batch = context_.batch();
  Status status;
  for (size_t i = 0; i < records_.size() && status.ok(); i++) {
    const KeyWork::Result result = key(i).result;
    const bool read = result == KeyWork::Result::kFound || result == KeyWork::Result::kMissing;
    if (read) status = add_overflow_read_of(i, batch);
  }
  if (status.ok()) status = batch.execute();
  if (status.ok()) return status;
  // Lengths that are not checked must not be believed by the caller.
  for (size_t i = 0; i < records_.size(); i++) {
    if (key(i).result == KeyWork::Result::kAborted) continue;
    forget(key(i));
  }
  return status;
}

// Keeps what is the key's; another key's is given back.
Status CandidateReader::settle(size_t i) {
  const RecordState& record = records_[i];
  KeyWork& work = key(i);
  if (work.result == KeyWork::Result::kAborted) return Status();
  if (record.end == RecordState::End::kPending) return Status();  // another one aborted first
  if (work.result != KeyWork::Result::kPending && is_record_of(work.key, work.record)) {
    context_.engine.locations.put(work.hash, work.access.header.offset());
    return Status();
  }
  // A stale location, or an entry with the same tag.
  DCHECK(!work.access.header.null());
  forget(work);
  context_.engine.locations.forget(work.hash);
  if (record.newly_locked && !wanted_by_other(work)) {
    // A lock whose release fails stays noted: the transaction gives it back as it ends.
    const Held held(work.access);
    RDMACC_RETURN_IF_ERROR(release_accesses(context_, std::span(&held, 1), /*certain=*/true));
  }
  work.access = Access{};
  return Status();
}

// Two keys of one operation may have met on one header, which is locked once. Shares are counted.
// The other one may also have tried in vain, before a lock was free that the stale location then
// got.
bool CandidateReader::wanted_by_other(const KeyWork& self) const {
  return self.access.locked && std::any_of(all_.begin(), all_.end(), [&](const KeyWork& other) {
           return &other != &self && other.result != KeyWork::Result::kPending &&
                  other.access.locked && other.access.header == self.access.header;
         });
}

}  // namespace

Status read_candidates(StageContext& context, std::span<const KeyWork> all,
                       std::span<const Candidate> candidates) {
  return CandidateReader(context, all, candidates).run();
}

}  // namespace rdmacc
