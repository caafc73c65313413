#include "engine/txn/stages/find.h"

#include <algorithm>
#include <array>
#include <boost/container/static_vector.hpp>

#include "engine/txn/driver/drive.h"
#include "engine/txn/stages/bucket_walk.h"
#include "engine/txn/stages/candidates.h"
#include "engine/txn/stages/first_look.h"
#include "engine/txn/stages/lock.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr int kFindAttemptsMax = 200;

// Room for so many keys is on the stack, and most look-ups have but one.
template <typename T>
using Few = boost::container::small_vector<T, 4>;

// Where a key's search stands between two rounds.
struct Search {
  KeyWork* work;
  CachedTable* table;
  NodeId node;
  boost::container::small_vector<uint64_t, 2>
      candidates;       // offsets of slots still to be read, next at the back
  bool walked = false;  // pre_read, post_read hold the gap of the latest walk
  Header pre_read{}, post_read{};
  uint64_t failed_wts = 0;  // gap stamp of a walk whose candidates were all something else
  bool failed = false;

  bool pending() const { return work->result == KeyWork::Result::kPending; }
  GlobalAddress address(uint64_t offset) const { return GlobalAddress::make(node, offset); }
};

class Finder {
 public:
  Finder(StageContext& context, std::span<KeyWork> keys) : context_(context), keys_(keys) {
    searches_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); i++) searches_[i].work = &keys[i];
  }

  Status run() {
    RDMACC_RETURN_IF_ERROR(prepare());
    for (int attempt = 0; attempt < kFindAttemptsMax; attempt++) {
      // What has lost anyhow locks and reads no more.
      if (!any_pending() || any_aborted()) return Status();
      if (attempt > 2) context_.backoff(attempt);
      if (context_.is_cancelled()) return Status(Code::kCancelled);
      RDMACC_RETURN_IF_ERROR(walk());
      RDMACC_RETURN_IF_ERROR(try_candidates());
      RDMACC_RETURN_IF_ERROR(settle_missing());
    }
    for (Search& search : searches_) {
      if (search.pending()) fail(search, AbortReason::kReadUnstable);
    }
    return Status();
  }

 private:
  Status prepare();
  bool any_pending() const {
    return std::any_of(searches_.begin(), searches_.end(),
                       [](const Search& s) { return s.pending(); });
  }
  static void fail(Search& search, AbortReason reason) {
    search.work->result = KeyWork::Result::kAborted;
    search.work->reason = reason;
  }
  Status walk();
  Status try_candidates();
  void note_rejected(Search& search) const;
  Status settle_missing();
  Status lock_gaps(std::span<Search*> missing);
  Status raise_gaps(std::span<Search*> missing, std::span<const Step> steps);
  Status give_back(const Access& access);
  bool gap_wanted(const Access& gap) const;
  bool any_aborted() const {
    return std::any_of(searches_.begin(), searches_.end(),
                       [](const Search& s) { return s.work->result == KeyWork::Result::kAborted; });
  }

  StageContext& context_;
  const std::span<const KeyWork> keys_;
  Few<Search> searches_;
};

Status Finder::prepare() {
  for (Search& search : searches_) {
    KeyWork& work = *search.work;
    if (!search.pending()) continue;  // found at the first look
    auto table = context_.table(work.table);
    if (!table.ok()) return table.status();
    search.table = *table;
    search.node = context_.engine.map.primary_of(work.hash);
    CHECK(search.node < search.table->roots.size());
    RDMACC_RETURN_IF_ERROR(
        context_.engine.tables.load_root(*search.table, search.node, false, context_.counters));
  }
  return Status();
}

// Walks the chain of every key that has no candidate.
Status Finder::walk() {
  Few<Search*> walking;
  Few<BucketWalk> walks;
  for (Search& search : searches_) {
    if (!search.pending() || !search.candidates.empty()) continue;
    if (walking.empty()) {
      walking.reserve(searches_.size());
      walks.reserve(searches_.size());
    }
    // It was loaded; another coroutine has found since then that the table is gone.
    if (search.table->roots[search.node].bits == 0) {
      return Status(Code::kNotFound,
                    "table " + std::to_string(search.work->table) + " was dropped");
    }
    BucketWalk& walk = walks.emplace_back();
    walk.group =
        search.address(TableCache::group_of(*search.table, search.node, search.work->hash));
    walk.bucket = home_bucket_of(search.work->hash);
    walk.tag = tag_of(search.work->hash);
    walk.header_only = search.work->mode == KeyWork::Mode::kGapOnly;
    walking.push_back(&search);
  }
  if (walking.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(walk_buckets(context_, {walks.data(), walks.size()}));
  for (size_t i = 0; i < walking.size(); i++) {
    Search& search = *walking[i];
    const Header& gap = walks[i].pre_read;
    search.walked = false;
    if (!claims(gap, search.work->table, search.work->hash)) {
      // The group was split, or the table is gone: the root array says.
      RDMACC_RETURN_IF_ERROR(context_.engine.tables.refresh_group(
          *search.table, search.node, search.work->hash, context_.counters));
      continue;
    }
    Access& gap_access = search.work->gap;
    if (gap_access.held() && !(gap_access.header == walks[i].group)) {
      // A lock keeps a key in its group: what it was found in cannot be what was locked.
      fail(search, AbortReason::kIndexMoved);
      continue;
    }
    search.walked = true;
    search.pre_read = walks[i].pre_read;
    search.post_read = walks[i].post_read;
    search.candidates = std::move(walks[i].candidates);
    if (!gap_access.held()) gap_access = gap_as_seen(walks[i].group, gap);
    if (search.work->mode == KeyWork::Mode::kGapOnly) {
      search.work->result = KeyWork::Result::kMissing;
    }
  }
  return Status();
}

Status Finder::give_back(const Access& access) {
  CHECK(access.held());
  const Held held(access);
  return release_accesses(context_, std::span(&held, 1), /*certain=*/true);
}

bool Finder::gap_wanted(const Access& gap) const {
  return gap.locked && std::any_of(searches_.begin(), searches_.end(), [&](const Search& search) {
           return search.work->gap.locked && search.work->gap.header == gap.header;
         });
}

Status Finder::try_candidates() {
  Few<Search*> tried;
  Few<Candidate> candidates;
  for (Search& search : searches_) {
    if (!search.pending() || search.candidates.empty()) continue;
    DCHECK(search.candidates.back() != 0);
    search.work->access = Access{};
    search.work->access.header = search.address(search.candidates.back());
    tried.push_back(&search);
    candidates.push_back({search.work, search.table});
  }
  if (tried.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(read_candidates(context_, keys_, {candidates.data(), candidates.size()}));
  for (Search* search : tried) {
    if (search->pending() && search->work->access.header.null()) note_rejected(*search);
  }
  return Status();
}

// The candidate was not the searched key. Once every entry with the key's tag was something else,
// that is a miss if the group did not change from before the walk until after these reads: a second
// walk that finds the same stamp. A transaction that locks what it reads need not know: it walks
// again under the gap's lock, which an earlier key of its own may have taken already.
void Finder::note_rejected(Search& search) const {
  CHECK(!search.candidates.empty());
  search.candidates.pop_back();
  if (!search.candidates.empty() || !search.walked) return;
  const bool unchanged =
      search.failed && search.failed_wts == search.pre_read.wts && search.pre_read.lock == 0;
  search.failed = true;
  search.failed_wts = search.post_read.wts;
  const bool settled = unchanged || search.work->gap.held() || context_.rules.locks_what_it_reads();
  if (!settled) search.walked = false;
}

// Keys whose chain holds no entry with their tag (or only others'): absent, once the gap header
// has been read by the protocol.
Status Finder::settle_missing() {
  std::vector<Search*> to_lock, to_raise;
  std::vector<Step> raises;
  for (Search& search : searches_) {
    if (!search.pending() || !search.candidates.empty() || !search.walked) continue;
    search.walked = false;
    KeyWork& work = *search.work;
    if (work.gap.held()) {  // walked under the transaction's lock
      work.result = KeyWork::Result::kMissing;
      continue;
    }
    if (context_.rules.locks_what_it_reads()) {
      to_lock.push_back(&search);
      continue;
    }
    const bool same = same_identity(work.gap, search.post_read);
    const Step step =
        same ? context_.judge_gap(search.pre_read, search.post_read) : Step::again(kNoVerbs);
    if (step.verdict == Verdict::kDone) {
      context_.note_gap_read(work.gap, search.pre_read, search.post_read, step);
      work.result = KeyWork::Result::kMissing;
    } else if (step.verdict == Verdict::kAbort) {
      fail(search, step.reason);
    } else if (step.verdict == Verdict::kTry) {
      to_raise.push_back(&search);
      raises.push_back(step);
    }
  }
  if (!to_raise.empty()) RDMACC_RETURN_IF_ERROR(raise_gaps(to_raise, raises));
  return to_lock.empty() ? Status() : lock_gaps(to_lock);
}

// What a rule wants to change in a gap header before it believes the entries: they are walked once
// more, whether or not the CAS has won.
Status Finder::raise_gaps(std::span<Search*> missing, std::span<const Step> steps) {
  CHECK(missing.size() == steps.size());
  auto* seen = context_.arena.allocate_array<uint64_t>(missing.size());
  if (seen == nullptr) return out_of_registered_memory();
  DoorbellBatch batch = context_.batch();
  for (size_t i = 0; i < missing.size(); i++) {
    CHECK((steps[i].verbs & kCas) != 0);
    batch.compare_swap(missing[i]->work->gap.header.plus(steps[i].word), steps[i].expected,
                       steps[i].desired, &seen[i]);
  }
  return batch.execute();
}

// Two-phase locking: the absence is protected by the gap header's lock, and the chain is walked
// once more under it.
Status Finder::lock_gaps(std::span<Search*> missing) {
  CHECK(context_.rules.locks_what_it_reads());
  std::vector<RecordState> record_states(missing.size());
  for (size_t i = 0; i < missing.size(); i++) record_states[i].access = &missing[i]->work->gap;
  RDMACC_RETURN_IF_ERROR(drive(context_, context_.rules.read, record_states));
  // Of keys that have met on one header, one has locked it, for all.
  boost::container::small_vector<GlobalAddress, 8> locked;
  for (const RecordState& each : record_states) {
    if (each.newly_locked) locked.push_back(each.access->header);
  }
  for (size_t i = 0; i < missing.size(); i++) {
    KeyWork& work = *missing[i]->work;
    if (record_states[i].end == RecordState::End::kAbort) {
      fail(*missing[i], record_states[i].reason);
    } else if (record_states[i].end == RecordState::End::kDone) {
      note_read(context_, record_states[i].accepted, work.gap);
    } else if (record_states[i].end == RecordState::End::kStale && work.gap.held()) {
      // The group was split between the walk and the CAS. The lock is given back at once unless
      // the transaction held it before.
      const Access stale = work.gap;
      work.gap = Access{};
      const bool fresh = std::find(locked.begin(), locked.end(), stale.header) != locked.end();
      if (fresh && !gap_wanted(stale)) RDMACC_RETURN_IF_ERROR(give_back(stale));
    }
  }
  return Status();
}

// What a first look has found of a key.
void note_look(const KeyState& look, KeyWork& key) {
  using Base = KeyState::Base;
  key.overflow = look.overflow;
  key.reason = look.lost;
  if (look.base != Base::kUnknown) key.record = record_of(look);
  if (look.base == Base::kExists) key.result = KeyWork::Result::kFound;
  if (look.base == Base::kAbsent) key.result = KeyWork::Result::kMissing;
  if (look.lost != AbortReason::kNone) key.result = KeyWork::Result::kAborted;
}

bool any_aborted(std::span<KeyWork* const> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [](const KeyWork* key) { return key->result == KeyWork::Result::kAborted; });
}

// Their results become the keys'. All of them are of one table.
Status look_first_at(StageContext& context, std::span<KeyWork* const> keys) {
  CHECK(!keys.empty() && keys.size() <= kKeysAtOnce);
  auto table = context.table(keys.front()->table);
  if (!table.ok()) return table.status();
  std::array<KeyState, kKeysAtOnce> looks;
  std::array<KeyState*, kKeysAtOnce> sought;
  for (size_t i = 0; i < keys.size(); i++) {
    looks[i].key = keys[i]->key;
    looks[i].hash = keys[i]->hash;
    looks[i].tuple = &keys[i]->access;
    sought[i] = &looks[i];
  }
  FirstLookOut out;
  const Status status = look_first(context, **table, {sought.data(), keys.size()}, out);
  for (size_t i = 0; i < keys.size(); i++) note_look(looks[i], *keys[i]);
  return status;
}

Status look_first_at(StageContext& context, std::span<KeyWork> keys) {
  boost::container::static_vector<KeyWork*, kKeysAtOnce> some;
  for (KeyWork& key : keys) {
    if (key.mode != KeyWork::Mode::kRead || key.looked) continue;
    const bool full = some.size() == kKeysAtOnce;
    if (full || (!some.empty() && some.front()->table != key.table)) {
      RDMACC_RETURN_IF_ERROR(look_first_at(context, {some.data(), some.size()}));
      // What has lost anyhow locks and reads no more.
      if (any_aborted({some.data(), some.size()})) return Status();
      some.clear();
    }
    some.push_back(&key);
  }
  return some.empty() ? Status() : look_first_at(context, {some.data(), some.size()});
}

}  // namespace

Status find_keys(StageContext& context, std::span<KeyWork> keys) {
  RDMACC_RETURN_IF_ERROR(look_first_at(context, keys));
  bool pending = false;
  for (const KeyWork& key : keys) {
    // What has lost anyhow locks and reads no more.
    if (key.result == KeyWork::Result::kAborted) return Status();
    pending = pending || key.result == KeyWork::Result::kPending;
  }
  return pending ? Finder(context, keys).run() : Status();
}

}  // namespace rdmacc
