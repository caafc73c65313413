// The log of a transaction on its way through commit.cc: placed, decided, made void, or left to the
// resolution of its worker.
#include <algorithm>

#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// How long a node that was lost is waited for, once a log has begun.
constexpr uint64_t kLogAgainUsMax = 60'000'000;
constexpr uint64_t kLogAgainPauseUs = 10'000;

}  // namespace

Status Transaction::place_record() {
  CHECK(placements_.empty());
  const PartitionMap& map =
      coordinator_.log.on_disk() ? coordinator_.disk_log_map : coordinator_.log_map;
  boost::container::small_vector<NodeId, 16> nodes;
  const Write* before = nullptr;
  for (const Write& write : record_.writes) {
    const bool same = before != nullptr && before->header.node() == write.header.node();
    if (!same) map.add_log_nodes(write.header.node(), nodes);
    before = &write;
  }
  return coordinator_.log.place(LoggedPayload(record_), stamps_.ctts, {nodes.data(), nodes.size()},
                                scratch_, parameters_.cancelled, counters_, placements_);
}

Status Transaction::log_record(StageContext& stage) {
  CHECK(!record_.writes.empty() && placements_.empty() && !log_begun_);
  const uint64_t start_ns = begin_stage(Stage::kLog);
  const bool known_on_disk = coordinator_.log.on_disk();
  RDMACC_RETURN_IF_ERROR(place_record());
  const bool on_disk = coordinator_.log.on_disk();
  if (on_disk && !known_on_disk) {  // the nodes have just said so
    coordinator_.log.applied(placements_);
    RDMACC_RETURN_IF_ERROR(place_record());
  }
  if (parameters_.cancelled != nullptr && *parameters_.cancelled) return Status(Code::kCancelled);
  if (!record_.gtid.null()) {
    for (const LogPlacement& placement : placements_) mark_prepared(placement);
  }
  log_begun_ = true;
  Status status = ends_at_owner(parameters_.plan, placements_, record_) && !on_disk
                      ? end_at_owner(stage)
                      : carry_out_log(stage, parameters_.plan, placements_);
  if (status.ok() && on_disk) status = flush_log();
  if (end_begun_) {
    time_stages({Stage::kLog, Stage::kCommit, Stage::kRelease}, start_ns);
  } else {
    time_stage(Stage::kLog, start_ns);
  }
  return status;
}

// False: that is not known, or a node that has lost its memory does not have the entry any more,
// and those that recover the transaction decide.
bool Transaction::flushed() {
  Status status;
  const auto attempt = [&] {
    status = coordinator_.log.flush(placements_, counters_);
    return status.ok() || status.code() == Code::kInvalidArgument;
  };
  return (attempt() || try_again(attempt)) && status.ok();
}

// All copies in memory are whole: it is committed, whatever becomes of a node. Until its nodes have
// it on disk others must not see it. One that is only prepared may still abort.
Status Transaction::flush_log() {
  if (!record_.gtid.null()) return coordinator_.log.flush(placements_, counters_);
  if (flushed()) return Status();
  note_writes();
  leave_locks_to_resolution();
  return Status(Code::kUnavailable, "whether a transaction is on disk is not known");
}

Status Transaction::end_at_owner(StageContext& stage) {
  CHECK(placements_.size() == 1 && !end_begun_);
  const NodeId owner = placements_.front().node;
  boost::container::small_vector<Access*, 16> given;
  boost::container::small_vector<Held, 16> held;
  for (Access& access : accesses_) {
    if (held.size() == kEndHeldMax) break;
    const bool certain = access.reader_count == 0 && (access.locked || access.registered);
    const bool fits = certain && access.header.node() == owner;
    if (!fits || access.write) continue;  // Commit gives that back
    given.push_back(&access);
    held.emplace_back(access);
  }
  const EndAtOwner end =
      carry_out_end(stage, placements_.front(), {held.data(), held.size()}, evicted_);
  const bool unknown = reason_of(end.logged) == AbortReason::kNodeRestarted;
  if (!end.logged.ok() && !unknown) return end.logged;
  end_begun_ = true;
  installed_ = end.installed;
  // Others may have read already what it has installed: there is no way back.
  const auto log_again = [this] { return tell_log(add_log_writes); };
  if (unknown && !log_again() && !try_again(log_again)) {
    release_begun_ = !held.empty();  // by the owner, perhaps
    note_writes();
    leave_locks_to_resolution();
    return Status(Code::kUnavailable, "whether a transaction is logged is not known");
  }
  const auto release_rest = [&] {
    return release_accesses(stage, {held.data(), held.size()}, /*certain=*/false).ok();
  };
  if (!end.released && !held.empty() && !release_rest()) static_cast<void>(try_again(release_rest));
  for (Access* access : given) access->note_given_back();
  return Status();
}

// Past the commit point there is no way back: what a lack of memory or a lost node kept from being
// done is tried again, for a bounded time, unless nothing of this worker takes effect any more.
bool Transaction::try_again(const std::function<bool()>& attempt) {
  Worker& worker = coordinator_.engine.worker;
  const uint64_t deadline_us = worker.endpoint().now_us() + kLogAgainUsMax;
  while (worker.endpoint().now_us() < deadline_us && !worker.endpoint().taken_for_dead()) {
    worker.scheduler().sleep_for(kLogAgainPauseUs);
    if (attempt()) return true;
  }
  return false;
}

// The entry stays in the ring: the resolution of this worker finishes what it lists. Until then the
// transaction is inside the gate, so that no memory that its record names becomes another's.
void Transaction::leave_to_resolution() {
  outcome_unknown_ = stays_inside_ = true;
  coordinator_.left_to_resolution = true;
  placements_.clear();
}

// Its locks stand until the worker is resolved: nothing here may release them.
void Transaction::leave_locks_to_resolution() {
  leave_to_resolution();
  writes_.keep_room();
  lock_state_unknown_ = false;
  for (Access& access : accesses_) access.note_unlocked();
}

// False: not every copy has been written to.
bool Transaction::tell_log(decltype(add_log_voiding)* add) {
  EngineContext& engine = coordinator_.engine;
  VerbArena arena(engine.worker.pool());
  DoorbellBatch batch(engine.worker.scheduler(), counters_);
  for (const LogPlacement& placement : placements_) {
    if (!add(engine.layout, placement, arena, batch)) return false;
  }
  return batch.execute().ok();
}

// No copy of the log, in memory or on disk, may leave it in doubt when others see the first of its
// rows.
Status Transaction::decide_log() {
  CHECK(log_begun_ && !placements_.empty());
  const auto attempt = [this] { return tell_log(add_log_deciding); };
  const bool told = attempt() || try_again(attempt);
  if (told && (!coordinator_.log.on_disk() || flushed())) return Status();
  return Status(Code::kUnavailable, "the log of a prepared transaction cannot be told its end");
}

// A log entry that may have arrived somewhere is made void before anything is unlocked, so that
// no reader of the log finds a transaction that its client was told is aborted, or one of which
// only a part is still locked. A node that is away for long leaves the outcome to resolution.
void Transaction::void_log() {
  if (placements_.empty()) return;
  const auto attempt = [this] { return tell_log(add_log_voiding); };
  if (log_begun_ && !attempt() && !try_again(attempt)) {
    note_writes();
    leave_locks_to_resolution();
  }
  if (log_begun_ && !record_.gtid.null() && coordinator_.log.on_disk()) {
    coordinator_.log.abort_on_disk(placements_, counters_);
  }
  coordinator_.log.applied(placements_);
}

}  // namespace rdmacc
