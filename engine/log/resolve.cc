#include "engine/log/resolve.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/cluster/gate.h"
#include "engine/cluster/timestamp.h"

namespace rdmacc {
namespace {

struct Committed {
  std::vector<std::byte> payload;
  LogRecord record;  // views into payload
};
// By lock_ctts: every copy holds the whole transaction, so one is enough.
using CommittedSet = std::map<uint64_t, Committed>;

Status still_dead(Worker& by, WorkerId dead) {
  if (by.endpoint().incarnation_of(dead) == 0) return Status::ok_status();
  return Status(Code::kInvalidArgument, "worker " + std::to_string(dead) + " is alive");
}

Rpc::Bytes request_about(WorkerId dead) {
  Rpc::Bytes request;
  MessageWriter(request).u16(dead);
  return request;
}

Status fence_everywhere(Worker& by, const Topology& topology, WorkerId dead,
                        VerbCounters& counters) {
  std::vector<Rpc::Call> calls(topology.node_workers());
  for (WorkerId worker = 0; worker < calls.size(); ++worker) {
    calls[worker].to = worker;
    calls[worker].method = kMethodFenceCaller;
    calls[worker].request = request_about(dead);
  }
  by.rpc().call_all(calls, counters);
  for (Rpc::Call& call : calls) {
    if (!call.status.ok()) return std::move(call.status);
  }
  return Status::ok_status();
}

Status gather(Worker& by, const RegionLayout& layout, NodeId node, WorkerId dead,
              CommittedSet& committed, VerbCounters& counters) {
  std::vector<std::vector<std::byte>> payloads;
  RDMACC_RETURN_IF_ERROR(read_ring(by, layout, node, dead, payloads, counters));
  for (std::vector<std::byte>& payload : payloads) {
    Result<LogRecord> record = decode_log_record(payload);
    if (!record.ok()) return record.status();
    if (worker_of_ctts(record->lock_ctts) != dead) {
      return Status(Code::kCorrupt, "a log record in another worker's ring");
    }
    // The views stay valid: moving a vector keeps its bytes in place.
    committed.try_emplace(record->lock_ctts,
                          Committed{std::move(payload), std::move(record.value())});
  }
  return Status::ok_status();
}

Status install_all(const CommittedSet& committed, const InstallCommitted& install,
                   ResolveReport& report, VerbCounters& counters) {
  std::vector<const LogRecord*> by_stamp;
  for (const auto& [lock_ctts, found] : committed) by_stamp.push_back(&found.record);
  std::stable_sort(by_stamp.begin(), by_stamp.end(),
                   [](const LogRecord* a, const LogRecord* b) { return a->stamp < b->stamp; });
  for (const LogRecord* record : by_stamp) {
    RDMACC_RETURN_IF_ERROR(install(*record, counters));
    ++report.committed;
    report.writes_installed += record->writes.size();
  }
  return Status::ok_status();
}

Status release_everywhere(Worker& by, const Topology& topology, WorkerId dead,
                          ResolveReport& report, VerbCounters& counters) {
  std::vector<Rpc::Call> calls(topology.nodes);
  for (NodeId node = 0; node < topology.nodes; ++node) {
    calls[node].to = topology.worker_of(node);
    calls[node].method = kMethodReleaseLocksOf;
    calls[node].request = request_about(dead);
  }
  by.rpc().call_all(calls, counters);
  for (Rpc::Call& call : calls) {
    if (!call.status.ok()) return std::move(call.status);
    MessageReader in(call.reply);
    report.locks_released += in.u64();
    report.slots_discarded += in.u64();
    if (!in.at_end()) return Status(Code::kCorrupt, "reply to a release of locks");
  }
  return Status::ok_status();
}

// The next owner of the worker id publishes its own incarnation before its first entry.
Status empty_rings(Worker& by, const RegionLayout& layout, const Topology& topology, WorkerId dead,
                   VerbCounters& counters) {
  VerbArena arena(by.pool());
  auto* empty = arena.allocate_array<LogRingHead>(1);
  if (empty == nullptr) return out_of_registered_memory();
  *empty = LogRingHead{};
  DoorbellBatch batch(by.scheduler(), counters);
  for (NodeId node = 0; node < topology.nodes; ++node) {
    batch.write(GlobalAddress::make(node, layout.log_ring(dead)), empty, sizeof(*empty));
  }
  return batch.execute();
}

Result<bool> may_have_left_shares(Worker& by, const RegionLayout& layout, WorkerId dead,
                                  VerbCounters& counters) {
  VerbArena arena(by.pool());
  auto* line = arena.allocate_array<WorkerLine>(1);
  if (line == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(by.scheduler(), counters);
  batch.read(GlobalAddress::make(0, layout.worker_line(dead)), line, sizeof(*line));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  return line->shares != 0 || line->shares_lost != 0;
}

}  // namespace

Result<ResolveReport> resolve_worker(Worker& by, const Topology& topology, WorkerId dead,
                                     const InstallCommitted& install, VerbCounters& counters) {
  if (dead >= topology.workers_max || topology.is_node_worker(dead)) {
    return Status(Code::kInvalidArgument, "not a coordinator's worker id");
  }
  const RegionLayout layout(topology);
  ResolveReport report;
  RDMACC_RETURN_IF_ERROR(still_dead(by, dead));
  RDMACC_RETURN_IF_ERROR(fence_everywhere(by, topology, dead, counters));
  CommittedSet committed;
  for (NodeId node = 0; node < topology.nodes; ++node) {
    RDMACC_RETURN_IF_ERROR(gather(by, layout, node, dead, committed, counters));
  }
  RDMACC_RETURN_IF_ERROR(install_all(committed, install, report, counters));
  RDMACC_RETURN_IF_ERROR(still_dead(by, dead));
  RDMACC_RETURN_IF_ERROR(release_everywhere(by, topology, dead, report, counters));
  RDMACC_RETURN_IF_ERROR(still_dead(by, dead));
  RDMACC_RETURN_IF_ERROR(empty_rings(by, layout, topology, dead, counters));
  const Result<bool> shares = may_have_left_shares(by, layout, dead, counters);
  if (!shares.ok()) return shares.status();
  report.shares = shares.value();
  if (!report.shares) RDMACC_RETURN_IF_ERROR(Gate::clear_line(by, layout, dead, counters));
  return report;
}

}  // namespace rdmacc
