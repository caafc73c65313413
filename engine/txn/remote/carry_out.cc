#include "engine/txn/remote/carry_out.h"

#include <algorithm>
#include <iterator>

#include "engine/txn/remote/stage_requests.h"
#include "engine/txn/stages/overflow_read.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// An answer holds a record and what is known of its header for each key.
constexpr uint32_t kFindKeysPerRequest = 1024;
static_assert(kFindKeysPerRequest * (kRecordInlineMax + 160) < kMaxMessageBytes);
constexpr size_t kKeyRequestBytes = 32;  // of a key, besides its bytes
constexpr uint32_t kScanGroupsPerRequest = 8;
static_assert(kScanTuplesPerMessage * (kRecordInlineMax + 96) < kMaxMessageBytes);
// A gap header with more entry changes than this is locked and placed one-sided: the owner would
// only walk for it what the batch of one transaction makes long.
constexpr size_t kEntryChangesPerRequest = 4096;

// Can what a node has answered be one of its headers? Null is none, and is not locked.
bool may_be_on(const StageContext& context, NodeId node, const Access& access) {
  const GlobalAddress header = access.header;
  if (header.null()) return !access.to_give_back();
  return header.node() == node && header.offset() % 64 == 0 &&
         header.offset() <= context.engine.layout.region_bytes - sizeof(Header);
}

// Does an answer name the header that has decided it?
bool is_whole(const StageContext& context, NodeId node, const KeyWork& work) {
  const bool located = !work.access.header.null() && work.mode != KeyWork::Mode::kGapOnly;
  return may_be_on(context, node, work.access) && may_be_on(context, node, work.gap) &&
         (work.result != KeyWork::Result::kFound || located) &&
         (work.result != KeyWork::Result::kMissing || located || !work.gap.header.null());
}

bool is_whole(const StageContext& context, const ScanWork& group) {
  const bool done = group.result == ScanWork::Result::kDone;
  const bool split = group.result == ScanWork::Result::kSplit;
  return may_be_on(context, group.node, group.gap) && (!done || !group.gap.header.null()) &&
         (!split || group.range.depth < kDepthMax) &&
         (group.gap.header.null() || group.gap.table == group.table) &&
         (!group.takes_rows || !group.gap.held()) &&
         std::all_of(group.tuples.begin(), group.tuples.end(), [&](const ScannedTuple& tuple) {
           return may_be_on(context, group.node, tuple.access) && !tuple.access.header.null() &&
                  tuple.access.table == group.table &&
                  (!group.takes_rows || !tuple.access.to_give_back());
         });
}

bool may_be_entries(const StageContext& context, const LockWork& work) {
  if (work.entries == nullptr) return true;
  const EntryWrites& writes = work.entries->writes;
  return std::all_of(writes.begin(), writes.end(), [&](const EntryWrite& entry) {
    return entry.offset % 8 == 0 && entry.offset <= context.engine.layout.region_bytes - 8;
  });
}

// Does what a node has locked and placed fit what it was asked for? The log record relies on it.
bool is_placed(const LockWork& work) {
  if (work.entries == nullptr) return true;
  const auto& changes = work.entries->changes;
  return work.entries->writes.size() == changes.size() &&
         std::all_of(changes.begin(), changes.end(),
                     [&](const IndexEntryChange& each) { return claims(*work.access, each.hash); });
}

// How many of the keys go into one round of requests. A node gets one of them at a time: two of one
// transaction would take its ctts in a lock word for their own.
size_t keys_of_round(std::span<const KeyWork> keys) {
  size_t bytes = 0, count = 0;
  while (count < keys.size() && count < kFindKeysPerRequest &&
         bytes < StageRequests::kBytesMax / 2) {
    bytes += keys[count++].key.size() + kKeyRequestBytes;
  }
  return count;
}

Status ask_for_keys(StageContext& context, std::span<KeyWork> keys) {
  StageRequests requests(context, StageWork::kFind);
  for (size_t i = 0; i < keys.size(); i++) {
    MessageWriter out =
        requests.add(context.engine.map.primary_of(keys[i].hash), i, kFindKeysPerRequest);
    write_key_request(out, keys[i]);
  }
  requests.send();
  Status status = requests.read(
      [&](MessageReader& in, size_t i) {
        const NodeId node = context.engine.map.primary_of(keys[i].hash);
        KeyWork& key = keys[i];
        if (read_key_result(in, context.arena, key) && is_whole(context, node, key)) return true;
        key = KeyWork::of(key.table, key.hash, key.key, key.mode);  // nothing of it is believed
        return false;
      },
      [&](size_t i) { keys[i].result = KeyWork::Result::kPending; });
  DoorbellBatch batch = context.batch();
  for (KeyWork& key : keys) {
    if (key.overflow == 0 || key.result != KeyWork::Result::kFound) continue;
    if (status.ok()) {
      status =
          add_overflow_read(context, key.access.header.node(), key.overflow, key.record, batch);
    }
    if (!status.ok()) key.record = {};  // its bytes are not here
  }
  const Status fetched = batch.execute();
  return status.ok() ? fetched : status;
}

// A commit is cut by size, records before gap headers: a later part is sent when the earlier ones
// have been carried out.
size_t end_of_part(std::span<const Write> writes, size_t begin) {
  constexpr size_t kFew = 64;
  const bool gap = writes[begin].kind == WriteKind::kGap;
  size_t bytes = 0, end = begin;
  while (end < writes.size() &&
         (writes.size() <= kFew || (writes[end].kind == WriteKind::kGap) == gap)) {
    const size_t more = 128 + writes[end].record.size() + writes[end].entries.size() * 16;
    if (bytes > 0 && bytes + more > StageRequests::kBytesMax) break;  // a long one goes by itself
    bytes += more;
    end++;
  }
  CHECK(end > begin);
  return end;
}

// Those of the part's writes that are on the node; the record itself if it has no others.
const LogRecord& part_of(const LogRecord& record, size_t begin, size_t end, NodeId node,
                         LogRecord& part) {
  const auto on_node = [node](const Write& write) { return write.header.node() == node; };
  const std::span<const Write> writes(record.writes.data() + begin, end - begin);
  const auto count = static_cast<size_t>(std::count_if(writes.begin(), writes.end(), on_node));
  if (count == record.writes.size()) return record;
  part.copy_head(record);
  part.writes.clear();
  part.writes.reserve(count);
  std::copy_if(writes.begin(), writes.end(), std::back_inserter(part.writes), on_node);
  return part;
}

bool writes_to(const LogRecord& record, size_t write, NodeId node) {
  return record.writes[write].header.node() == node;
}

// To each node its own writes of the part; those of nodes that did not answer are lost. A node that
// has lost an earlier part gets no other: an entry would be there before its record.
void send_part(StageContext& context, const LogRecord& record, size_t begin, size_t end,
               std::vector<GlobalAddress>& evicted,
               boost::container::small_vector<size_t, 8>& lost) {
  StageRequests requests(context, StageWork::kCommit);
  LogRecord part;
  for (NodeId node = 0; node < context.engine.topology.nodes; node++) {
    const LogRecord& own = part_of(record, begin, end, node, part);
    if (own.writes.empty()) continue;
    if (std::any_of(lost.begin(), lost.end(),
                    [&](size_t i) { return writes_to(record, i, node); })) {
      for (size_t i = begin; i < end; i++) {
        if (writes_to(record, i, node)) lost.push_back(i);
      }
      continue;
    }
    MessageWriter out = requests.add(node, node, 1);
    const size_t bytes = encoded_bytes(own);
    out.u32(static_cast<uint32_t>(bytes));
    encode_to(own, out.room(bytes));
  }
  requests.send();
  // Whatever a node answers, its part is committed: what it did not do is done by the caller.
  const Status status = requests.read(
      [&](MessageReader& in, size_t node) {
        return read_evicted(in, static_cast<NodeId>(node), evicted);
      },
      [&](size_t node) {
        for (size_t i = begin; i < end; i++) {
          if (writes_to(record, i, static_cast<NodeId>(node))) lost.push_back(i);
        }
      });
  static_cast<void>(status);
}

}  // namespace

bool begins_with_first_look(const ProtocolRules& rules, StagePlan plan) {
  const Stage stage = rules.locks_what_it_reads() ? Stage::kLock : Stage::kRead;
  return plan.of(stage) == Primitive::kOneSided;
}

Status carry_out_find(StageContext& context, StagePlan plan, std::span<KeyWork> keys) {
  CHECK(!keys.empty());
  if (begins_with_first_look(context.rules, plan)) return find_keys(context, keys);
  while (!keys.empty()) {
    const std::span<KeyWork> round = keys.first(keys_of_round(keys));
    CHECK(!round.empty());
    RDMACC_RETURN_IF_ERROR(ask_for_keys(context, round));
    for (const KeyWork& key : round) {
      if (key.result == KeyWork::Result::kAborted) return Status();
    }
    keys = keys.subspan(round.size());
  }
  return Status();
}

Status carry_out_scan(StageContext& context, StagePlan plan, std::span<ScanWork> groups) {
  const Stage stage = context.rules.locks_what_it_reads() ? Stage::kLock : Stage::kRead;
  if (plan.of(stage) == Primitive::kOneSided) return scan_groups(context, groups, 0);
  StageRequests requests(context, StageWork::kScan);
  for (size_t i = 0; i < groups.size(); i++) {
    MessageWriter out = requests.add(groups[i].node, i, kScanGroupsPerRequest);
    write_group_request(out, groups[i]);
  }
  requests.send();
  RDMACC_RETURN_IF_ERROR(requests.read(
      [&](MessageReader& in, size_t i) {
        ScanWork& group = groups[i];
        if (read_group_result(in, context.arena, group) && is_whole(context, group)) return true;
        group.gap = Access{};
        group.tuples.clear();
        group.result = ScanWork::Result::kPending;
        return false;
      },
      [](size_t) {}));
  for (ScanWork& group : groups) {
    if (group.result == ScanWork::Result::kAborted) return Status();
  }
  for (ScanWork& group : groups) {
    if (group.result == ScanWork::Result::kTooLarge || group.result == ScanWork::Result::kPending) {
      group.result = ScanWork::Result::kPending;
      RDMACC_RETURN_IF_ERROR(scan_groups(context, std::span(&group, 1), 0));
    } else {
      RDMACC_RETURN_IF_ERROR(read_overflow(context, group));
    }
  }
  return Status();
}

Status carry_out_lock(StageContext& context, StagePlan plan, std::span<LockWork> works) {
  CHECK(!works.empty());
  if (plan.of(Stage::kLock) == Primitive::kOneSided) return lock_accesses(context, works);
  StageRequests requests(context, StageWork::kLock);
  std::vector<LockWork*> long_ones;
  for (size_t i = 0; i < works.size(); i++) {
    DCHECK(works[i].access != nullptr);
    const EntryWork* entries = works[i].entries;
    if (entries != nullptr && entries->changes.size() > kEntryChangesPerRequest) {
      long_ones.push_back(&works[i]);
      continue;
    }
    MessageWriter out = requests.add(works[i].access->header.node(), i);
    write_lock_request(out, works[i]);
  }
  requests.send();
  Status status = requests.read(
      [&](MessageReader& in, size_t i) {
        return read_lock_result(in, works[i]) && may_be_entries(context, works[i]);
      },
      [](size_t) {});
  for (LockWork* work : long_ones) {
    if (status.ok()) status = lock_accesses(context, std::span(work, 1));
  }
  // Whatever a node that answers nonsense has locked is looked for.
  const bool placed = std::all_of(works.begin(), works.end(), is_placed);
  return status.ok() && !placed ? aborted(AbortReason::kNodeRestarted) : status;
}

Status carry_out_validate(StageContext& context, StagePlan plan, std::span<Access*> accesses) {
  CHECK(!accesses.empty());
  if (plan.of(context.rules.validation) == Primitive::kOneSided) {
    return validate_accesses(context, accesses);
  }
  StageRequests requests(context, StageWork::kValidate);
  for (size_t i = 0; i < accesses.size(); i++) {
    MessageWriter out = requests.add(accesses[i]->header.node(), i);
    write_access(out, *accesses[i]);
  }
  requests.send();
  return requests.read([](MessageReader&, size_t) { return true; }, [](size_t) {});
}

Status carry_out_log(StageContext& context, StagePlan plan, std::span<LogPlacement> placements) {
  CHECK(!placements.empty());
  DoorbellBatch batch = context.batch();
  if (plan.of(Stage::kLog) == Primitive::kOneSided) {
    for (const LogPlacement& placement : placements) {
      if (!add_log_writes(context.engine.layout, placement, context.arena, batch)) {
        return out_of_registered_memory();
      }
    }
    return batch.execute();
  }
  StageRequests requests(context, StageWork::kLog);
  std::vector<size_t> lost;
  for (size_t i = 0; i < placements.size(); i++) {
    MessageWriter out = requests.add(placements[i].node, i, 1);
    encode_placement(placements[i], out);
  }
  requests.send();
  Status status = requests.read([](MessageReader&, size_t) { return true; },
                                [&](size_t i) { lost.push_back(i); });
  if (lost.empty()) return status;
  for (const size_t i : lost) {
    if (!add_log_writes(context.engine.layout, placements[i], context.arena, batch)) {
      return out_of_registered_memory();
    }
  }
  const Status again = batch.execute();
  return reason_of(status) == AbortReason::kNodeRestarted ? again : status;
}

Status carry_out_commit(StageContext& context, StagePlan plan, const LogRecord& record,
                        std::vector<GlobalAddress>& evicted) {
  CHECK(!record.writes.empty() && record.lock_ctts != 0);
  InstallOptions options = install_options(context, &evicted);
  if (plan.of(Stage::kCommit) == Primitive::kOneSided) {
    return install(context.engine.worker, record, options, context.counters);
  }
  boost::container::small_vector<size_t, 8> lost;
  for (size_t begin = 0; begin < record.writes.size();) {
    const size_t end = end_of_part(record.writes, begin);
    send_part(context, record, begin, end, evicted, lost);
    begin = end;
  }
  if (lost.empty()) return Status();
  LogRecord rest;
  rest.copy_head(record);
  std::sort(lost.begin(), lost.end());  // records before gap headers
  for (const size_t i : lost) rest.writes.push_back(record.writes[i]);
  options.guarded = true;
  return install(context.engine.worker, rest, options, context.counters);
}

bool releases_with_commit(const StageContext& context, StagePlan plan) {
  return plan.of(Stage::kCommit) == Primitive::kOneSided &&
         plan.of(Stage::kRelease) == Primitive::kOneSided &&
         context.engine.worker.scheduler().port() == Endpoint::Port::kPosted &&
         context.engine.worker.scheduler().savings().one_round;
}

Status carry_out_commit_and_release(StageContext& context, const LogRecord& record,
                                    std::span<const Held> held, std::vector<GlobalAddress>& evicted,
                                    bool& release_begun) {
  CHECK(!record.writes.empty() && record.lock_ctts != 0);
  CHECK(!held.empty() && held.size() <= kCommitHeldMax);
  InstallOptions options = install_options(context, &evicted);
  options.also_released = held;
  options.release_begun = &release_begun;
  return install(context.engine.worker, record, options, context.counters);
}

bool validates_in_place(const StageContext& context, StagePlan plan) {
  return plan.of(context.rules.validation) == Primitive::kOneSided &&
         context.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
}

bool releases_in_place(const StageContext& context, StagePlan plan) {
  return plan.of(Stage::kRelease) == Primitive::kOneSided &&
         context.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
}

Status carry_out_release(StageContext& context, StagePlan plan, std::span<const Held> held) {
  CHECK(!held.empty());
  if (plan.of(Stage::kRelease) == Primitive::kOneSided) {
    return release_accesses(context, held, true);
  }
  StageRequests requests(context, StageWork::kRelease);
  for (size_t i = 0; i < held.size(); i++) {
    MessageWriter out = requests.add(held[i].header.node(), i);
    write_held(out, held[i]);
  }
  requests.send();
  std::vector<Held> lost;
  const Status status = requests.read([](MessageReader&, size_t) { return true; },
                                      [&](size_t i) { lost.push_back(held[i]); });
  if (lost.empty()) return status;
  const Status again = release_accesses(context, lost, false);
  const bool shared =
      std::any_of(lost.begin(), lost.end(), [](const Held& each) { return each.reader_count > 0; });
  return shared ? status : again;
}

Status release_everywhere(StageContext& context) {
  CHECK(locked_exclusively(context.stamps.ctts));
  StageRequests requests(context, StageWork::kReleaseCtts);
  for (NodeId node = 0; node < context.engine.topology.nodes; node++) requests.add(node, node);
  requests.send();
  return requests.read([](MessageReader&, size_t) { return true; }, [](size_t) {});
}

}  // namespace rdmacc
