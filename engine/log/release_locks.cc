// What each node does for the resolution of a dead coordinator: engine/log/resolve.h, step 3.
#include <algorithm>

#include "engine/cluster/timestamp.h"
#include "engine/log/resolve.h"
#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {
namespace {

constexpr size_t kHeadersPerRound = 64;

// Whose locks are released, but for those of its transactions in doubt.
struct Departed {
  WorkerId worker = kNoWorker;
  std::vector<uint64_t> kept;  // their ctts
  bool keeps(uint64_t lock) const {
    return std::find(kept.begin(), kept.end(), ctts_of_lock(lock)) != kept.end();
  }
};

// One round: reads the headers again, then frees them of the dead worker. Words are changed
// by CAS from what was seen: whatever is no longer the dead worker's stays as it is.
Status release_round(Worker& worker, StorageService& storage, const Departed& departed,
                     std::span<const GlobalAddress> headers, VerbArena& arena,
                     ResolveReport& report) {
  const WorkerId dead = departed.worker;
  CHECK(dead != kNoWorker && !headers.empty() && headers.size() <= kHeadersPerRound);
  auto* seen = arena.allocate_array<Header>(headers.size());
  auto* was = arena.allocate_array<uint64_t>(headers.size() * 3);
  if (seen == nullptr || was == nullptr) {
    return out_of_registered_memory();
  }
  DoorbellBatch batch(worker.scheduler(), worker.counters());
  for (size_t i = 0; i < headers.size(); ++i) batch.read(headers[i], seen + i, sizeof(Header));
  RDMACC_RETURN_IF_ERROR(batch.execute());

  uint64_t unlocked = 0;
  for (size_t i = 0; i < headers.size(); ++i) {
    const Header& header = seen[i];
    const bool locked = locked_exclusively(header.lock) && worker_of_ctts(header.lock) == dead;
    if (header.waiter != 0 && worker_of_ctts(header.waiter) == dead) {
      batch.compare_swap(headers[i].plus(offsetof(Header, waiter)), header.waiter, 0, was + i * 3);
    }
    if (locked && departed.keeps(header.lock)) continue;
    if (locked && header.flags == 0) {
      // Allocated for an insert that nothing committed; no other transaction knew of it.
      storage.discard_slot(headers[i].offset(), header.lock);
      ++report.slots_discarded;
      continue;
    }
    // The word that SUNDIAL's lock replaced is gone with its lease: the longest one is assumed.
    if (sundial_locked(header.sundial) && worker_of_ctts(header.sundial) == dead) {
      batch.compare_swap(headers[i].plus(offsetof(Header, sundial)), header.sundial,
                         sundial_unlocked_word(sundial_wts(header.sundial), kSundialDeltaMax),
                         was + i * 3 + 1);
      unlocked += locked ? 0 : 1;
    }
    if (locked) {
      batch.compare_swap(headers[i].plus(kOffsetOfLock), header.lock, 0, was + i * 3 + 2);
      ++unlocked;
    }
  }
  RDMACC_RETURN_IF_ERROR(batch.execute());
  report.locks_released += unlocked;
  return Status::ok_status();
}

Status release_locks_of(Worker& worker, StorageService& storage, const Departed& departed,
                        ResolveReport& report) {
  const std::vector<GlobalAddress> headers = storage.locks_of(departed.worker);
  VerbArena arena(worker.pool());
  for (size_t at = 0; at < headers.size(); at += kHeadersPerRound) {
    const size_t count = std::min(kHeadersPerRound, headers.size() - at);
    RDMACC_RETURN_IF_ERROR(release_round(worker, storage, departed,
                                         std::span(headers).subspan(at, count), arena, report));
    arena.reset();
  }
  return Status::ok_status();
}

}  // namespace

void serve_resolution(Worker& worker, StorageService& storage, CallerFence& fence) {
  serve_fence(worker, fence);
  worker.rpc().handle(
      kMethodReleaseLocksOf,
      [&worker, &storage, &fence](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
        MessageReader in(request);
        Departed departed;
        departed.worker = in.u16();
        const uint32_t count = in.u32();
        if (count > request.size() / 8) return Status(Code::kCorrupt, "request to release locks");
        for (uint32_t i = 0; i < count; ++i) departed.kept.push_back(in.u64());
        if (!in.at_end()) return Status(Code::kCorrupt, "request to release locks");
        // Dead, and nothing of it runs here.
        RDMACC_RETURN_IF_ERROR(fence.fence(departed.worker));
        ResolveReport report;
        RDMACC_RETURN_IF_ERROR(release_locks_of(worker, storage, departed, report));
        MessageWriter out(reply);
        out.u64(report.locks_released);
        out.u64(report.slots_discarded);
        return Status::ok_status();
      });
}

}  // namespace rdmacc
