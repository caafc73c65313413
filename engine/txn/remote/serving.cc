#include "engine/txn/remote/serving.h"

#include <algorithm>

#include "engine/log/log_ring.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/stages/install.h"
#include "engine/txn/stages/scan_groups.h"
#include "rdma/base/check.h"

namespace rdmacc {

Status Serving::find() {
  std::vector<KeyWork>& keys = frame_.keys;
  keys.resize(header_.count);
  for (KeyWork& key : keys) {
    if (!read_key_request(in_, key)) return malformed_stage_request();
    if (context_.engine.map.primary_of(key.hash) != node_) return malformed_stage_request();
  }
  answer(find_keys(context_, keys));
  for (const KeyWork& key : keys) write_key_result(out_, key);
  return Status();
}

Status Serving::scan() {
  std::vector<ScanWork>& groups = frame_.groups;
  groups.resize(header_.count);
  for (ScanWork& group : groups) {
    if (!read_group_request(in_, group) || group.node != node_) return malformed_stage_request();
  }
  const size_t share = kScanTuplesPerMessage / std::max<size_t>(groups.size(), 1);
  answer(scan_groups(context_, groups, std::max<size_t>(share, 1)));
  for (const ScanWork& group : groups) write_group_result(out_, group);
  return Status();
}

Status Serving::lock() {
  std::vector<Access>& accesses = frame_.accesses;
  std::vector<LockWork>& works = frame_.locks;
  accesses.resize(header_.count);
  works.resize(header_.count);
  frame_.entries.resize(header_.count);
  for (uint32_t i = 0; i < header_.count; i++) {
    if (!read_lock_request(in_, accesses[i], frame_.entries[i], works[i]) ||
        !valid(accesses[i].header)) {
      return malformed_stage_request();
    }
  }
  answer(lock_accesses(context_, works));
  for (const LockWork& work : works) write_lock_result(out_, work);
  return Status();
}

Status Serving::validate() {
  if (!context_.rules.validate) return malformed_stage_request();
  std::vector<Access>& accesses = frame_.accesses;
  accesses.resize(header_.count);
  for (Access& access : accesses) {
    if (!read_access(in_, access) || !valid(access.header)) return malformed_stage_request();
    frame_.reads.push_back(&access);
  }
  answer(validate_accesses(context_, frame_.reads));
  return Status();
}

Status Serving::log(WorkerId from) {
  DoorbellBatch batch = context_.batch();
  for (uint32_t i = 0; i < header_.count; i++) {
    auto placement = decode_placement(in_, from, node_, context_.arena);
    if (!placement.ok()) return placement.status();
    if (!add_log_writes(context_.engine.layout, *placement, context_.arena, batch)) {
      return out_of_registered_memory();
    }
  }
  answer(batch.execute());
  return Status();
}

bool Serving::may_install_all(const LogRecord& record) const {
  return std::all_of(record.writes.begin(), record.writes.end(), [this](const Write& write) {
    return write.header.node() == node_ && may_install(write, context_.engine.layout);
  });
}

// Unlocking is the last effect on a header, and no other can lock it before, so a request
// that was carried out in part by a process that died is simply carried out by the coordinator.
Status Serving::commit() {
  answer(Status());
  for (uint32_t i = 0; i < header_.count; i++) {
    const std::string_view bytes = in_.bytes();
    if (!in_.ok()) return malformed_stage_request();
    RDMACC_RETURN_IF_ERROR(
        decode_log_record(std::as_bytes(std::span(bytes.data(), bytes.size())), frame_.record));
    if (!may_install_all(frame_.record)) return malformed_stage_request();
    frame_.evicted.clear();
    const InstallOptions options = install_options(context_, &frame_.evicted);
    RDMACC_RETURN_IF_ERROR(
        install(context_.engine.worker, frame_.record, options, context_.counters));
    write_evicted(out_, frame_.evicted);
  }
  return Status();
}

bool Serving::read_all_held(size_t count) {
  frame_.held.resize(count);
  return std::all_of(frame_.held.begin(), frame_.held.end(),
                     [this](Held& each) { return read_held(in_, each) && valid(each.header); });
}

Status Serving::release() {
  if (!read_all_held(header_.count)) return malformed_stage_request();
  answer(release_accesses(context_, frame_.held, /*certain=*/true));
  return Status();
}

// The record that the entry holds; a part of a transaction that has more elsewhere is refused.
Status Serving::read_logged_record(const LogPlacement& placement) {
  LogEntryHeader entry;
  CHECK(placement.entry.size() >= sizeof(entry));  // decode_placement() has looked
  memcpy(&entry, placement.entry.data(), sizeof(entry));
  if (entry.magic != kLogEntryMagic || entry.kind != LogPayload::kInline ||
      entry.payload_bytes != entry.stored_bytes) {
    return malformed_stage_request();
  }
  LogRecord& record = frame_.record;
  RDMACC_RETURN_IF_ERROR(
      decode_log_record(placement.entry.subspan(sizeof(entry), entry.stored_bytes), record));
  const bool own = record.lock_ctts == context_.stamps.ctts && record.gtid.null() &&
                   record.protocol == static_cast<uint8_t>(context_.rules.protocol);
  return own && may_install_all(record) ? Status() : malformed_stage_request();
}

Status Serving::log_one(const LogPlacement& placement) {
  DoorbellBatch batch = context_.batch();
  if (!add_log_writes(context_.engine.layout, placement, context_.arena, batch)) {
    return out_of_registered_memory();
  }
  return batch.execute();
}

// From the log on the transaction is committed, so nothing is refused after it: what was not
// installed or released is the coordinator's to do, guarded by the locks.
Status Serving::end(WorkerId from) {
  if (header_.count == 0) return malformed_stage_request();
  auto placement = decode_placement(in_, from, node_, context_.arena);
  if (!placement.ok()) return placement.status();
  if (!read_all_held(header_.count - 1)) return malformed_stage_request();
  RDMACC_RETURN_IF_ERROR(read_logged_record(*placement));
  const Status logged = log_one(*placement);
  EndResult result;
  if (logged.ok()) {
    const InstallOptions options = install_options(context_, &frame_.evicted);
    result.installed =
        install(context_.engine.worker, frame_.record, options, context_.counters).ok();
    result.released =
        result.installed &&
        (frame_.held.empty() || release_accesses(context_, frame_.held, /*certain=*/true).ok());
  }
  answer(logged);
  write_end_result(out_, result);
  write_evicted(out_, frame_.evicted);
  return Status();
}

// A slot that was allocated for the attempt and never became live goes back to the arena.
Status Serving::release_ctts(StorageService* storage) {
  if (storage == nullptr) return malformed_stage_request();
  const uint64_t ctts = context_.stamps.ctts;
  CHECK(locked_exclusively(ctts));
  const WorkerId worker = worker_of_ctts(ctts);
  auto* seen = context_.arena.allocate_array<Header>(1);
  auto* was = context_.arena.allocate_array<uint64_t>(1);
  if (seen == nullptr || was == nullptr) return out_of_registered_memory();
  for (const GlobalAddress header : storage->locks_of(worker)) {
    DoorbellBatch batch = context_.batch();
    batch.read(header, seen, sizeof(*seen));
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if (seen->waiter == ctts) {
      batch.compare_swap(header.plus(kOffsetOfWaiter), ctts, 0, was);
      RDMACC_RETURN_IF_ERROR(batch.execute());
    }
    if (ctts_of_lock(seen->lock) != ctts) continue;
    if (seen->flags == 0) {
      storage->discard_slot(header.offset(), ctts);
      continue;
    }
    Held each;
    each.header = header;
    each.locked = true;
    // The lock is its, so the lease is, too; what it replaced had ended at the latest then.
    each.lease_locked = sundial_locked(seen->sundial) && worker_of_ctts(seen->sundial) == worker;
    each.lease = sundial_unlocked_word(sundial_wts(seen->sundial), kSundialDeltaMax);
    frame_.held.push_back(each);
  }
  answer(release_accesses(context_, frame_.held, /*certain=*/false));
  return Status();
}

}  // namespace rdmacc
