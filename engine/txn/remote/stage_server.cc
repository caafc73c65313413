#include "engine/txn/remote/stage_server.h"

#include "engine/txn/remote/serving.h"
#include "rdma/base/check.h"

namespace rdmacc {

StageServer::StageServer(Worker& worker, const Topology& topology, CallerFence& fence,
                         StorageService* storage, RulesOf rules_of)
    : engine_(worker, topology, kLocationCacheEntries),
      storage_(storage),
      rules_of_(rules_of),
      node_(static_cast<NodeId>(worker.id() / topology.threads_per_node)),
      frames_(worker.pool()) {
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
  if (!read_header(in, header) || header.count > Serving::kItemsMax)
    return malformed_stage_request();
  const ProtocolRules* rules = rules_of_(header.protocol, header.lock_mode);
  // A smaller one would pass for a number of readers, or for no lock.
  const bool locks = locked_exclusively(header.stamps.ctts);
  if (!locks || worker_of_ctts(header.stamps.ctts) != from) return malformed_stage_request();
  engine_.enter_own_era();
  const ServingFrames::Taken frame(frames_);
  VerbCounters counters, allocation_counters;
  // What may have to wait for others ends early when its result is no longer wanted; what it has
  // locked until then is in the answer.
  const bool waits = header.work == StageWork::kFind || header.work == StageWork::kScan ||
                     header.work == StageWork::kLock || header.work == StageWork::kValidate;
  const bool* const cancelled = waits ? engine_.worker.rpc().call_cancelled() : nullptr;
  StageContext context{
      engine_, *rules, header.stamps, (*frame).arena, counters, allocation_counters, cancelled};
  Serving serving(context, *frame, node_, header, in, reply);
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
    case StageWork::kEnd:
      return on_disk_ ? malformed_stage_request() : serving.end(from);
    case StageWork::kReleaseCtts:
      return serving.release_ctts(storage_);
    case StageWork::kCount:
      break;
  }
  return malformed_stage_request();
}

}  // namespace rdmacc
