// The Lock stage of the write set, and what comes before it: which gap headers guard the entries
// that are to be set or cleared.

#include "engine/txn/stages/gap_look.h"
#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Look-ups of the gap headers of one write set, while groups are split under them.
constexpr int kGapLooksMax = 16;
constexpr size_t kWritesAtOnce = 1024;

}  // namespace

// What many writes need comes in parts, so that it stays in the caches, and registered memory does
// not grow with them.
template <typename Work>
Status Transaction::in_memory_of_its_own(StageContext& stage, const Work& work) {
  if (writes_.all().size() <= kWritesAtOnce) return work(stage);
  VerbArena arena(coordinator_.engine.worker.pool());
  StageContext part = context(arena);
  return work(part);
}

// Unlinks and unchecked inserts have not met their gap header yet. Keys of one group share an
// access, and the group may be split between the look-ups of two of them: those that it does not
// hold any more are looked up again. Nothing is decided here; the lock of each group decides
// (lock.cc).
Status Transaction::find_missing_gaps(StageContext& stage) {
  const bool in_place = coordinator_.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  if (in_place && begins_with_first_look(*parameters_.rules, parameters_.plan)) {
    RDMACC_RETURN_IF_ERROR(look_at_gaps(stage));
    writes_.forget_moved_gaps();
  }
  for (int look = 0; look < kGapLooksMax; look++) {
    bool all_known = true;
    for (size_t from = 0; from < writes_.all().size();) {
      std::vector<PlannedWrite*> lacking;
      std::vector<KeyWork> works = writes_.missing_gaps(from, kWritesAtOnce, lacking);
      if (works.empty()) break;
      all_known = false;
      RDMACC_RETURN_IF_ERROR(in_memory_of_its_own(stage, [&](StageContext& part) {
        return carry_out_find(part, parameters_.plan, works);
      }));
      for (size_t i = 0; i < works.size(); i++) {
        if (works[i].result != KeyWork::Result::kMissing) return aborted(AbortReason::kIndexMoved);
        RDMACC_RETURN_IF_ERROR(merge(works[i].gap, &lacking[i]->gap));
      }
    }
    if (all_known) return Status();
    writes_.forget_moved_gaps();
  }
  return aborted(AbortReason::kIndexMoved);
}

// Nearly all of them, where a look costs no more than a cache line. The rest is find_keys()'s.
Status Transaction::look_at_gaps(StageContext& stage) {
  constexpr size_t kPart = 64;  // prefetched at a time, and looked at as one round
  const auto lacks = [](const PlannedWrite& write) {
    return write.relinks() && write.gap == nullptr;
  };
  const std::span<PlannedWrite> all = writes_.all();
  return with_port_in_place(stage, [&](auto& port) {
    for (size_t at = 0; at < all.size(); at += kPart) {
      const std::span<PlannedWrite> part = all.subspan(at, std::min(kPart, all.size() - at));
      bool any = false;
      for (const PlannedWrite& write : part) {
        if (!lacks(write)) continue;
        prefetch_cached_group(stage, write.table, write.hash);
        any = true;
      }
      if (!any) continue;
      for (const PlannedWrite& write : part) {
        if (lacks(write)) prefetch_gap(port, stage, write.table, write.hash);
      }
      for (PlannedWrite& write : part) {
        Access seen;
        if (!lacks(write) || !look_at_gap(port, stage, write.table, write.hash, seen)) continue;
        RDMACC_RETURN_IF_ERROR(merge(seen, &write.gap));
      }
      port.end_round();
    }
    return Status();
  });
}

Status Transaction::lock_writes(StageContext& stage) {
  CHECK(!writes_.empty());
  LargeVector<LockWork>& works = writes_.plan_locks();
  if (works.empty()) return Status();
  // Of the latest draw, for what it says of the time: others' leases that are over by now.
  if (parameters_.rules->leases_by_clock) stage.stamps.lease = stage.engine.leases.next();
  const uint64_t start_ns = begin_stage(Stage::kLock);
  Status status;
  for (size_t at = 0; at < works.size() && status.ok(); at += kWritesAtOnce) {
    const auto some = std::span(works).subspan(at, std::min(kWritesAtOnce, works.size() - at));
    status = in_memory_of_its_own(
        stage, [&](StageContext& part) { return carry_out_lock(part, parameters_.plan, some); });
  }
  time_stage(Stage::kLock, start_ns);
  return status;
}

}  // namespace rdmacc
