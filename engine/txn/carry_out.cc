#include "engine/txn/carry_out.h"

#include <algorithm>
#include <map>

#include "engine/txn/overflow_read.h"
#include "engine/txn/stage_message.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// A request is closed once it has this many bytes or items.
constexpr size_t kRequestBytesMax = 512 * 1024;
constexpr uint32_t kRequestItemsMax = 2048;
// An answer holds a record and what is known of its header for each key.
constexpr uint32_t kFindKeysPerRequest = 1024;
static_assert(kFindKeysPerRequest * (kRecordInlineMax + 160) < kMaxMessageBytes);
constexpr size_t kKeyRequestBytes = 32;  // of a key, besides its bytes
constexpr uint32_t kScanGroupsPerRequest = 8;
static_assert(kScanTuplesPerMessage * (kRecordInlineMax + 96) < kMaxMessageBytes);
// A gap header with more entry changes than this is locked and placed one-sided: the owner would
// only walk for it what the batch of one transaction makes long.
constexpr size_t kEntryChangesPerRequest = 4096;

Status corrupt_answer() { return Status(Code::kCorrupt, "a stage's answer does not parse"); }

// Can what a node has answered be one of its headers? Null is none, and is not locked.
bool may_be_on(const StageContext& context, NodeId node, const Access& access) {
  const GlobalAddress header = access.header;
  if (header.null()) return !access.held();
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

bool is_whole(const StageContext& context, const GroupWork& group) {
  const bool done = group.result == GroupWork::Result::kDone;
  const bool split = group.result == GroupWork::Result::kSplit;
  return may_be_on(context, group.node, group.gap) && (!done || !group.gap.header.null()) &&
         (!split || group.range.depth < kDepthMax) &&
         std::all_of(group.tuples.begin(), group.tuples.end(), [&](const ScannedTuple& tuple) {
           return may_be_on(context, group.node, tuple.access) && !tuple.access.header.null();
         });
}

bool may_be_entries(const StageContext& context, const LockWork& work) {
  return std::all_of(work.entries.begin(), work.entries.end(), [&](const EntryWrite& entry) {
    return entry.offset % 8 == 0 && entry.offset <= context.engine.layout.region_bytes - 8;
  });
}

// Does what a node has locked and placed fit what it was asked for? The log record relies on it.
bool is_placed(const LockWork& work) {
  return work.entries.size() == work.entry_changes.size() &&
         std::all_of(work.entry_changes.begin(), work.entry_changes.end(),
                     [&](const IndexEntryChange& each) { return claims(*work.access, each.hash); });
}

// Requests under construction: one open one per node.
class Requests {
 public:
  Requests(StageContext& context, StageWork work) : context_(context), work_(work) {}

  // Where to write the next item for `node`; `item` is remembered for the answer.
  MessageWriter add(NodeId node, size_t item, uint32_t items_max = kRequestItemsMax) {
    CHECK(node < context_.engine.topology.nodes);
    Open& open = open_[node];
    if (open.call == kNone || calls_[open.call].request.size() > kRequestBytesMax ||
        items_[open.call].size() >= items_max) {
      open.call = calls_.size();
      calls_.emplace_back();
      items_.emplace_back();
      Rpc::Call& call = calls_.back();
      // Only thread 0 of a node has its storage, which is asked for all locks of a transaction.
      const uint16_t thread = work_ == StageWork::kReleaseCtts ? 0 : context_.engine.worker.id();
      call.to = context_.engine.topology.worker_of(node, thread);
      call.method = kMethodStage;
      call.cancelled = context_.cancelled;
      MessageWriter out(call.request);
      write_header(out, StageHeader{work_, context_.rules.protocol, context_.rules.lock_mode,
                                    context_.stamps, 0});
    }
    items_[open.call].push_back(item);
    return MessageWriter(calls_[open.call].request);
  }

  void send() {
    for (size_t i = 0; i < calls_.size(); i++) {
      const auto count = static_cast<uint32_t>(items_[i].size());
      memcpy(calls_[i].request.data() + kStageHeaderBytes - sizeof(count), &count, sizeof(count));
    }
    if (!calls_.empty()) context_.engine.worker.rpc().call_all(calls_, context_.counters);
  }

  // Gives each answer's reader, positioned behind the status, with the items it is about. All
  // answers are read, errors or not: they say what was locked. The first error is given back.
  template <typename ReadItem, typename Lost>
  Status read(ReadItem read_item, Lost lost) {
    Status result;
    for (size_t i = 0; i < calls_.size(); i++) {
      Status status = calls_[i].status;
      if (status.ok()) {
        MessageReader in(calls_[i].reply);
        status = read_status(in);
        context_.engine.clock.observe(in.u64());  // what the owner has seen
        for (const size_t item : items_[i]) {
          if (!read_item(in, item)) {
            status = corrupt_answer();
            break;
          }
        }
      } else {
        for (const size_t item : items_[i]) lost(item);
        // Whatever kept the answer from the coordinator, the owner may have locked before.
        if (status.code() == Code::kUnavailable || locks()) {
          status = aborted(AbortReason::kNodeRestarted);
        }
      }
      if (status.code() == Code::kCorrupt && locks()) {
        status = aborted(AbortReason::kNodeRestarted);
      }
      // A lost node outranks conflicts: what it locked is not known and must be looked for.
      const bool lost_node = reason_of(status) == AbortReason::kNodeRestarted;
      if (!status.ok() && (result.ok() || lost_node)) result = status;
    }
    return result;
  }

 private:
  bool locks() const {
    return work_ == StageWork::kFind || work_ == StageWork::kScan || work_ == StageWork::kLock;
  }

  static constexpr size_t kNone = SIZE_MAX;
  struct Open {
    size_t call = kNone;
  };
  StageContext& context_;
  const StageWork work_;
  std::map<NodeId, Open> open_;
  std::vector<Rpc::Call> calls_;
  std::vector<std::vector<size_t>> items_;
};

// How many of the keys go into one round of requests. A node gets one of them at a time: two of one
// transaction would take its ctts in a lock word for their own.
size_t keys_of_round(std::span<const KeyWork> keys) {
  size_t bytes = 0, count = 0;
  while (count < keys.size() && count < kFindKeysPerRequest && bytes < kRequestBytesMax / 2) {
    bytes += keys[count++].key.size() + kKeyRequestBytes;
  }
  return count;
}

Status ask_for_keys(StageContext& context, std::span<KeyWork> keys) {
  Requests requests(context, StageWork::kFind);
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

}  // namespace

Status carry_out_find(StageContext& context, StagePlan plan, std::span<KeyWork> keys) {
  const Stage stage = context.rules.locks_what_it_reads() ? Stage::kLock : Stage::kRead;
  if (plan.of(stage) == Primitive::kOneSided) return find_keys(context, keys);
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

Status carry_out_scan(StageContext& context, StagePlan plan, std::span<GroupWork> groups) {
  const Stage stage = context.rules.locks_what_it_reads() ? Stage::kLock : Stage::kRead;
  if (plan.of(stage) == Primitive::kOneSided) return scan_groups(context, groups, 0);
  Requests requests(context, StageWork::kScan);
  for (size_t i = 0; i < groups.size(); i++) {
    MessageWriter out = requests.add(groups[i].node, i, kScanGroupsPerRequest);
    write_group_request(out, groups[i]);
  }
  requests.send();
  RDMACC_RETURN_IF_ERROR(requests.read(
      [&](MessageReader& in, size_t i) {
        GroupWork& group = groups[i];
        if (read_group_result(in, context.arena, group) && is_whole(context, group)) return true;
        group.gap = Access{};
        group.tuples.clear();
        group.result = GroupWork::Result::kPending;
        return false;
      },
      [](size_t) {}));
  for (GroupWork& group : groups) {
    if (group.result == GroupWork::Result::kAborted) return Status();
  }
  for (GroupWork& group : groups) {
    if (group.result == GroupWork::Result::kTooLarge ||
        group.result == GroupWork::Result::kPending) {
      group.result = GroupWork::Result::kPending;
      RDMACC_RETURN_IF_ERROR(scan_groups(context, std::span(&group, 1), 0));
    } else {
      RDMACC_RETURN_IF_ERROR(read_overflow(context, group));
    }
  }
  return Status();
}

Status carry_out_lock(StageContext& context, StagePlan plan, std::span<LockWork> works) {
  if (plan.of(Stage::kLock) == Primitive::kOneSided) return lock_accesses(context, works);
  Requests requests(context, StageWork::kLock);
  std::vector<LockWork*> long_ones;
  for (size_t i = 0; i < works.size(); i++) {
    DCHECK(works[i].access != nullptr);
    if (works[i].entry_changes.size() > kEntryChangesPerRequest) {
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
  if (plan.of(context.rules.validation) == Primitive::kOneSided) {
    return validate_accesses(context, accesses);
  }
  Requests requests(context, StageWork::kValidate);
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
  Requests requests(context, StageWork::kLog);
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
  // Cut per node and by size, records before gap headers: a later part is sent when the earlier
  // ones have been carried out.
  std::vector<bool> lost(record.writes.size(), false);
  for (size_t begin = 0; begin < record.writes.size();) {
    std::map<NodeId, std::pair<LogRecord, std::vector<size_t>>> parts;
    size_t bytes = 0;
    const bool gap = record.writes[begin].kind == WriteKind::kGap;
    size_t end = begin;
    while (end < record.writes.size() &&
           (record.writes.size() <= 64 || (record.writes[end].kind == WriteKind::kGap) == gap)) {
      const Write& write = record.writes[end];
      const size_t more = 128 + write.record.size() + write.entries.size() * 16;
      if (bytes > 0 && bytes + more > kRequestBytesMax) break;  // a long one goes by itself
      auto& [part, items] = parts[write.header.node()];
      part.writes.push_back(write);
      items.push_back(end);
      bytes += more;
      end++;
    }
    CHECK(end > begin);
    Requests requests(context, StageWork::kCommit);
    for (auto& [node, part] : parts) {
      part.first.copy_head(record);
      std::vector<std::byte> encoded;
      encode(part.first, encoded);
      MessageWriter out = requests.add(node, node, 1);
      out.bytes(std::string_view(reinterpret_cast<const char*>(encoded.data()), encoded.size()));
    }
    requests.send();
    // Whatever a node answers, its part is committed: what it did not do is done below.
    const Status status = requests.read(
        [&](MessageReader& in, size_t node) {
          return read_evicted(in, static_cast<NodeId>(node), evicted);
        },
        [&](size_t node) {
          for (const size_t i : parts[static_cast<NodeId>(node)].second) lost[i] = true;
        });
    static_cast<void>(status);
    begin = end;
  }
  LogRecord rest;
  rest.copy_head(record);
  for (size_t i = 0; i < record.writes.size(); i++) {
    if (lost[i]) rest.writes.push_back(record.writes[i]);
  }
  if (rest.writes.empty()) return Status();
  options.guarded = true;
  return install(context.engine.worker, rest, options, context.counters);
}

Status carry_out_release(StageContext& context, StagePlan plan, std::span<const Held> held) {
  CHECK(!held.empty());
  if (plan.of(Stage::kRelease) == Primitive::kOneSided) {
    return release_accesses(context, held, true);
  }
  Requests requests(context, StageWork::kRelease);
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
  Requests requests(context, StageWork::kReleaseCtts);
  for (NodeId node = 0; node < context.engine.topology.nodes; node++) requests.add(node, node);
  requests.send();
  return requests.read([](MessageReader&, size_t) { return true; }, [](size_t) {});
}

}  // namespace rdmacc
