#include "engine/txn/stages/lock.h"

#include <algorithm>
#include <array>

#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/driver/drive.h"
#include "engine/txn/driver/in_place_rounds.h"
#include "engine/txn/stages/bucket_walk.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/release_held.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr int kPlaceAttempts = 4;

// The entry changes of one home bucket of one locked group.
struct Placement {
  const Access* gap;
  EntryWork* work;
  uint32_t bucket;
  boost::container::small_vector<const IndexEntryChange*, 2> entry_changes;
  bool placed = false;
};

// Room for so many is on the stack: a new-order of TPC-C has 17 at most.
template <typename T>
using Several = boost::container::small_vector<T, 16>;

Several<Placement> gather(std::span<LockWork> works) {
  Several<Placement> placements;
  for (LockWork& work : works) {
    if (work.entries == nullptr) continue;
    std::array<size_t, kBucketsPerGroup> index{};
    for (const IndexEntryChange& entry_change : work.entries->changes) {
      const uint32_t bucket = home_bucket_of(entry_change.hash);
      if (index[bucket] == 0) {
        placements.push_back(Placement{work.access, work.entries, bucket, {}});
        index[bucket] = placements.size();
      }
      placements[index[bucket] - 1].entry_changes.push_back(&entry_change);
    }
  }
  return placements;
}

void note_room(EntryWork& work, EntryWork::Room room) { work.room = std::max(work.room, room); }

// Decides the entries of one chain, which was walked under the group's lock: each key is judged by
// the header that was read then. `lacking`: how many inserts found no room. An unlink whose
// entry is gone has lost its record to another transaction. Entries that are cleared are not used
// again in the same transaction: a reader's walk must not find a new key's entry where it just
// saw the old one's.
Status place(Placement& placement, const BucketWalk& walk, uint32_t& lacking) {
  DCHECK(walk.all_entries);
  boost::container::small_vector<EntryWrite, 4> entries;
  size_t next_free = 0;
  lacking = 0;
  for (const IndexEntryChange* entry_change : placement.entry_changes) {
    if (!claims(walk.post_read, placement.gap->table, entry_change->hash)) {
      return aborted(AbortReason::kIndexMoved);
    }
    bool found = false;
    if (entry_change->insert) {
      for (; next_free < walk.places.size() && !found; next_free++) {
        if (walk.places[next_free].value != 0) continue;
        entries.push_back(
            {walk.places[next_free].offset, make_entry(entry_change->hash, entry_change->tuple)});
        found = true;
      }
      if (!found) lacking++;
    } else {
      const uint64_t value = make_entry(entry_change->hash, entry_change->tuple);
      for (const BucketWalk::Place& at : walk.places) {
        if (at.value != value) continue;
        entries.push_back({at.offset, 0});
        found = true;
        break;
      }
      if (!found) return aborted(AbortReason::kStaleLocation);
    }
  }
  if (lacking > 0) return Status();
  auto& out = placement.work->writes;
  out.insert(out.end(), entries.begin(), entries.end());
  placement.placed = true;
  const bool full = next_free > 0 &&
                    std::none_of(walk.places.begin() + static_cast<std::ptrdiff_t>(next_free),
                                 walk.places.end(), [](const auto& at) { return at.value == 0; });
  if (full) note_room(*placement.work, EntryWork::Room::kFull);
  return Status();
}

Status place_entries(StageContext& context, std::span<LockWork> works) {
  Several<Placement> placements = gather(works);
  for (const Placement& placement : placements) placement.work->writes.clear();
  for (int attempt = 0; attempt < kPlaceAttempts; attempt++) {
    Several<Placement*> open;
    Several<BucketWalk> walks;
    for (Placement& placement : placements) {
      DCHECK(placement.gap->locked);
      if (placement.placed) continue;
      BucketWalk walk;
      walk.group = placement.gap->header;
      walk.bucket = placement.bucket;
      walk.all_entries = true;
      open.push_back(&placement);
      walks.push_back(std::move(walk));
    }
    if (open.empty()) return Status();
    RDMACC_RETURN_IF_ERROR(walk_buckets(context, {walks.data(), walks.size()}));
    for (size_t i = 0; i < open.size(); i++) {
      uint32_t lacking = 0;
      RDMACC_RETURN_IF_ERROR(place(*open[i], walks[i], lacking));
      if (lacking == 0) continue;
      const bool behind = walks[i].places.size() > kEntriesPerBucket || lacking > kEntriesPerBucket;
      note_room(*open[i]->work, behind ? EntryWork::Room::kBehind : EntryWork::Room::kGrown);
      uint32_t inserts = 0;
      for (const IndexEntryChange* entry_change : open[i]->entry_changes) {
        inserts += entry_change->insert ? 1 : 0;
      }
      RDMACC_RETURN_IF_ERROR(context.engine.storage.extend_bucket(walks[i].group, open[i]->bucket,
                                                                  inserts, context.stamps.ctts,
                                                                  context.allocation_counters));
    }
  }
  return Status(Code::kNoSpace, "a bucket chain could not be extended");
}

}  // namespace

namespace {

Status lock_by_driver(StageContext& context, std::span<LockWork> works) {
  boost::container::small_vector<RecordState, 16> record_states;
  for (LockWork& work : works) {
    DCHECK(work.access != nullptr && !work.access->header.null());
    if (context.rules.locked_whole(*work.access)) continue;
    RecordState record;
    record.access = work.access;
    record_states.push_back(record);
  }
  if (!record_states.empty()) {
    const std::span<RecordState> records(record_states.data(), record_states.size());
    RDMACC_RETURN_IF_ERROR(drive(context, context.rules.lock, records));
    RDMACC_RETURN_IF_ERROR(outcome_of(records));
  }
  const RecordState* state = record_states.data();
  for (LockWork& work : works) {
    if (state == record_states.data() + record_states.size()) break;
    if (state->access != work.access) continue;  // it was locked before
    RDMACC_RETURN_IF_ERROR(note_covered(state->accepted, work));
    state++;
  }
  return Status();
}

}  // namespace

Status lock_accesses(StageContext& context, std::span<LockWork> works) {
  const StageRule& rule = context.rules.lock;
  CHECK(rule);
  const bool in_place = context.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  RDMACC_RETURN_IF_ERROR(in_place && rule.lock != nullptr ? rule.lock(context, rule.step, works)
                                                          : lock_by_driver(context, works));
  const bool places = std::any_of(works.begin(), works.end(),
                                  [](const LockWork& work) { return work.entries != nullptr; });
  return places ? place_entries(context, works) : Status();
}

namespace {

Status validate_some(StageContext& context, std::span<RecordState> records) {
  RDMACC_RETURN_IF_ERROR(drive(context, context.rules.validate, records));
  Status status;
  for (const RecordState& record : records) {
    const Status each = outcome_of_check(record);
    // A header that is another's tells more than that others have met on it.
    if (status.ok() || record.end == RecordState::End::kStale) status = each.ok() ? status : each;
  }
  return status;
}

}  // namespace

// A long scan's reads come in parts, which bound the registered memory.
Status validate_accesses(StageContext& context, std::span<Access* const> accesses) {
  const StageRule& rule = context.rules.validate;
  CHECK(rule);
  if (accesses.empty()) return Status();
  const bool in_place = context.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  if (in_place && rule.check != nullptr) return rule.check(context, rule.step, accesses);
  const size_t part = std::min<size_t>(4096, accesses.size());
  // Memory of the operation's own for a few; a long validation does not make that grow.
  constexpr size_t kFew = 64;
  VerbArena apart(context.engine.worker.pool());
  VerbArena& arena = part <= kFew ? context.arena : apart;
  auto* snapshots = arena.allocate_array<HeaderSnapshot>(part);
  if (snapshots == nullptr) return out_of_registered_memory();
  boost::container::small_vector<RecordState, 16> records;
  for (size_t begin = 0; begin < accesses.size(); begin += part) {
    const size_t count = std::min(part, accesses.size() - begin);
    records.assign(count, RecordState{});
    for (size_t i = 0; i < count; i++) {
      DCHECK(accesses[begin + i] != nullptr);
      records[i].access = accesses[begin + i];
      records[i].snapshot = &snapshots[i];
      RDMACC_RETURN_IF_ERROR(take_sizes(context, records[i]));
    }
    RDMACC_RETURN_IF_ERROR(validate_some(context, {records.data(), count}));
  }
  return Status();
}

namespace {

// Registered memory for giving one header back.
struct Word {
  uint64_t lock, lease, reader_count, waiter, seen;
};

// Takes from `held` what is not the attempt's any more: only a lock word with its ctts proves that
// the lock is, and with it a lease that its worker has locked. `headers`: what they were read as.
Status drop_foreign(StageContext& context, std::span<Held> held, Header* headers) {
  DoorbellBatch batch = context.batch();
  for (size_t i = 0; i < held.size(); i++) batch.read(held[i].header, &headers[i], sizeof(Header));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  for (size_t i = 0; i < held.size(); i++) {
    const uint64_t lease = headers[i].sundial;
    held[i].locked = held[i].locked && ctts_of_lock(headers[i].lock) == context.stamps.ctts;
    held[i].lease_locked = held[i].lease_locked && held[i].locked && sundial_locked(lease) &&
                           worker_of_ctts(lease) == worker_of_ctts(context.stamps.ctts);
    held[i].registered = held[i].registered && headers[i].waiter == context.stamps.ctts;
  }
  return Status();
}

// Where a node may release the same locks meanwhile, for a request that came late: by CAS, or one
// that another transaction has got since would be given away.
Status release_own(StageContext& context, std::span<Held> held, Word* words, VerbArena& arena) {
  auto* headers = arena.allocate_array<Header>(held.size());
  if (headers == nullptr) return out_of_registered_memory();
  RDMACC_RETURN_IF_ERROR(drop_foreign(context, held, headers));
  DoorbellBatch batch = context.batch();
  for (size_t i = 0; i < held.size(); i++) {
    const GlobalAddress header = held[i].header;
    if (held[i].lease_locked) {
      batch.compare_swap(header.plus(kOffsetOfSundial), headers[i].sundial, held[i].lease,
                         &words[i].seen);
    }
    if (held[i].locked) {
      batch.compare_swap(header.plus(kOffsetOfLock), headers[i].lock, 0, &words[i].seen);
    }
    if (held[i].registered) {
      batch.compare_swap(header.plus(kOffsetOfWaiter), headers[i].waiter, 0, &words[i].seen);
    }
  }
  return batch.execute();
}

Status release_in_place(StageContext& context, std::span<const Held> held) {
  return with_port_in_place(context, [held](auto& port) {
    LostNodes lost;
    for (const Held& each : held) {
      release_held(port, each, port.find(each.header, sizeof(Header)), lost);
    }
    port.end_round();
    return lost.any() ? DoorbellBatch::unreachable() : Status();
  });
}

Status release_some(StageContext& context, std::span<const Held> some, bool certain) {
  // Memory of the operation's own for a few; a long release does not make that grow.
  CHECK(!some.empty());
  constexpr size_t kFew = 32;
  VerbArena apart(context.engine.worker.pool());
  VerbArena& arena = some.size() <= kFew ? context.arena : apart;
  if (certain) {
    DoorbellBatch batch = context.batch();
    RDMACC_RETURN_IF_ERROR(add_releases(arena, some, batch));
    return batch.execute();
  }
  auto* words = arena.allocate_array<Word>(some.size());
  if (words == nullptr) return out_of_registered_memory();
  boost::container::small_vector<Held, kFew> held(some.begin(), some.end());
  return release_own(context, {held.data(), held.size()}, words, arena);
}

}  // namespace

Status add_releases(VerbArena& arena, std::span<const Held> held, DoorbellBatch& batch) {
  auto* words = arena.allocate_array<Word>(held.size());
  if (words == nullptr) return out_of_registered_memory();
  for (size_t i = 0; i < held.size(); i++) {
    const Held& each = held[i];
    const GlobalAddress lock = each.header.plus(kOffsetOfLock);
    words[i] = Word{0, each.lease, 0, 0, 0};
    if (each.reader_count > 0) {
      batch.fetch_add(lock, 0 - uint64_t{each.reader_count}, &words[i].reader_count);
    }
    // The lease first: the lock's holder may lock the lease.
    if (each.lease_locked) {
      batch.write(each.header.plus(kOffsetOfSundial), &words[i].lease, 8);
    }
    if (each.locked) batch.write(lock, &words[i].lock, 8);
    if (each.registered) batch.write(each.header.plus(kOffsetOfWaiter), &words[i].waiter, 8);
  }
  return Status();
}

Status release_accesses(StageContext& context, std::span<const Held> held, bool certain) {
  CHECK(certain || locked_exclusively(context.stamps.ctts));
  constexpr size_t kBatchMax = 512;
  const bool in_place = context.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  if (certain && in_place) return release_in_place(context, held);
  for (size_t begin = 0; begin < held.size(); begin += kBatchMax) {
    const size_t count = std::min(kBatchMax, held.size() - begin);
    RDMACC_RETURN_IF_ERROR(release_some(context, held.subspan(begin, count), certain));
  }
  return Status();
}

}  // namespace rdmacc
