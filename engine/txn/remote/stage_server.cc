#include "engine/txn/remote/stage_server.h"

#include <algorithm>

#include "engine/log/log_ring.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/remote/stage_message.h"
#include "engine/txn/stages/install.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint32_t kItemsMax = 64 * 1024;

Status malformed() { return Status(Code::kCorrupt, "malformed stage request"); }

// One request while it is served. Each serve_* reads the items, carries the stage out and writes
// the answer: the status, then a result for every item.
class Serving {
 public:
  Serving(StageContext& context, NodeId node, const StageHeader& header, MessageReader& in,
          Rpc::Bytes& reply)
      : context_(context), node_(node), header_(header), in_(in), out_(reply) {
    CHECK(node < context.engine.topology.nodes && header.count <= kItemsMax);
  }

  Status find() {
    std::vector<KeyWork> keys(header_.count);
    for (KeyWork& key : keys) {
      if (!read_key_request(in_, key)) return malformed();
      if (context_.engine.map.primary_of(key.hash) != node_) return malformed();
    }
    answer(find_keys(context_, keys));
    for (const KeyWork& key : keys) write_key_result(out_, key);
    return Status();
  }

  Status scan() {
    std::vector<GroupWork> groups(header_.count);
    for (GroupWork& group : groups) {
      if (!read_group_request(in_, group) || group.node != node_) return malformed();
    }
    const size_t share = kScanTuplesPerMessage / std::max<size_t>(groups.size(), 1);
    answer(scan_groups(context_, groups, std::max<size_t>(share, 1)));
    for (const GroupWork& group : groups) write_group_result(out_, group);
    return Status();
  }

  Status lock() {
    std::vector<Access> accesses(header_.count);
    std::vector<LockWork> works(header_.count);
    for (uint32_t i = 0; i < header_.count; i++) {
      if (!read_lock_request(in_, accesses[i], works[i]) || !valid(accesses[i].header)) {
        return malformed();
      }
    }
    answer(lock_accesses(context_, works));
    for (const LockWork& work : works) write_lock_result(out_, work);
    return Status();
  }

  Status validate() {
    if (!context_.rules.validate) return malformed();
    std::vector<Access> accesses(header_.count);
    std::vector<Access*> pointers;
    for (Access& access : accesses) {
      if (!read_access(in_, access) || !valid(access.header)) return malformed();
      pointers.push_back(&access);
    }
    answer(validate_accesses(context_, pointers));
    return Status();
  }

  Status log(WorkerId from) {
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

  // Unlocking is the last effect on a header, and no other can lock it before, so a request
  // that was carried out in part by a process that died is simply carried out by the coordinator.
  Status commit() {
    std::vector<std::vector<GlobalAddress>> results;
    for (uint32_t i = 0; i < header_.count; i++) {
      const std::string_view bytes = in_.bytes();
      if (!in_.ok()) return malformed();
      auto record = decode_log_record(std::as_bytes(std::span(bytes.data(), bytes.size())));
      if (!record.ok()) return record.status();
      for (const Write& write : record->writes) {
        if (write.header.node() != node_ || !may_install(write, context_.engine.layout)) {
          return malformed();
        }
      }
      std::vector<GlobalAddress> evicted;
      const InstallOptions options = install_options(context_, &evicted);
      const Status status = install(context_.engine.worker, *record, options, context_.counters);
      if (!status.ok()) return status;
      results.push_back(std::move(evicted));
    }
    answer(Status());
    for (const std::vector<GlobalAddress>& evicted : results) write_evicted(out_, evicted);
    return Status();
  }

  Status release() {
    std::vector<Held> held(header_.count);
    for (Held& each : held) {
      if (!read_held(in_, each) || !valid(each.header)) return malformed();
    }
    answer(release_accesses(context_, held, /*certain=*/true));
    return Status();
  }

  // A slot that was allocated for the attempt and never became live goes back to the arena.
  Status release_ctts(StorageService* storage) {
    if (storage == nullptr) return malformed();
    const uint64_t ctts = context_.stamps.ctts;
    CHECK(locked_exclusively(ctts));
    const WorkerId worker = worker_of_ctts(ctts);
    auto* seen = context_.arena.allocate_array<Header>(1);
    auto* was = context_.arena.allocate_array<uint64_t>(1);
    if (seen == nullptr || was == nullptr) return out_of_registered_memory();
    std::vector<Held> held;
    for (const GlobalAddress header : storage->locks_of(worker)) {
      DoorbellBatch batch = context_.batch();
      batch.read(header, seen, sizeof(*seen));
      RDMACC_RETURN_IF_ERROR(batch.execute());
      if (seen->waiter == ctts) {
        batch.compare_swap(header.plus(kOffsetOfWaiter), ctts, 0, was);
        RDMACC_RETURN_IF_ERROR(batch.execute());
      }
      if (seen->lock != ctts) continue;
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
      held.push_back(each);
    }
    answer(release_accesses(context_, held, /*certain=*/false));
    return Status();
  }

 private:
  // The status, and the largest stamp that was seen: the caller's clock goes on from there.
  void answer(const Status& status) {
    write_status(out_, status);
    out_.u64(context_.engine.clock.last());
  }
  bool valid(GlobalAddress header) const {
    const RegionLayout& layout = context_.engine.layout;
    return header.node() == node_ && header.offset() % 64 == 0 && header.offset() >= layout.pages &&
           header.offset() + sizeof(Header) <= layout.region_bytes;
  }
  StageContext& context_;
  const NodeId node_;
  const StageHeader& header_;
  MessageReader& in_;
  MessageWriter out_;
};

}  // namespace

StageServer::StageServer(Worker& worker, const Topology& topology, CallerFence& fence,
                         StorageService* storage, RulesOf rules_of)
    : engine_(worker, topology, kLocationCacheEntries),
      storage_(storage),
      rules_of_(rules_of),
      node_(static_cast<NodeId>(worker.id() / topology.threads_per_node)) {
  CHECK(rules_of_ != nullptr && node_ < topology.nodes);
  if (storage != nullptr) engine_.blocks.take_from(*storage);
  worker.rpc().handle(
      kMethodStage, fence.guard([this](WorkerId from, std::span<const std::byte> request,
                                       Rpc::Bytes& reply) { return serve(from, request, reply); }));
}

Status StageServer::serve(WorkerId from, std::span<const std::byte> request, Rpc::Bytes& reply) {
  requests_++;
  MessageReader in(request);
  StageHeader header;
  if (!read_header(in, header) || header.count > kItemsMax) return malformed();
  const ProtocolRules* rules = rules_of_(header.protocol, header.lock_mode);
  // A smaller one would pass for a number of readers, or for no lock.
  const bool locks = locked_exclusively(header.stamps.ctts);
  if (rules == nullptr || !locks || worker_of_ctts(header.stamps.ctts) != from) return malformed();
  engine_.enter_own_era();
  VerbArena arena(engine_.worker.pool());
  VerbCounters counters, allocation_counters;
  // What may have to wait for others ends early when its result is no longer wanted; what it has
  // locked until then is in the answer.
  const bool waits = header.work == StageWork::kFind || header.work == StageWork::kScan ||
                     header.work == StageWork::kLock || header.work == StageWork::kValidate;
  const bool* const cancelled = waits ? engine_.worker.rpc().call_cancelled() : nullptr;
  StageContext context{engine_,  *rules, header.stamps, arena, counters, allocation_counters,
                       cancelled};
  Serving serving(context, node_, header, in, reply);
  switch (header.work) {
    case StageWork::kFind:
      return serving.find();
    case StageWork::kScan:
      return serving.scan();
    case StageWork::kLock:
      return serving.lock();
    case StageWork::kValidate:
      return serving.validate();
    case StageWork::kLog:
      return serving.log(from);
    case StageWork::kCommit:
      return serving.commit();
    case StageWork::kRelease:
      return serving.release();
    case StageWork::kReleaseCtts:
      return serving.release_ctts(storage_);
    case StageWork::kCount:
      break;
  }
  return malformed();
}

}  // namespace rdmacc
