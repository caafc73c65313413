#include "engine/log/resolve.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/cluster/gate.h"
#include "engine/cluster/timestamp.h"

namespace rdmacc {
namespace {

struct Logged {
  std::vector<std::byte> payload;
  LogRecord record;                        // views into payload
  bool committed = false;                  // by one copy at least
  std::vector<GlobalAddress> prepared_at;  // copies that do not say so
};
// By lock_ctts: every copy holds the whole transaction, so one is enough.
using LoggedSet = std::map<uint64_t, Logged>;

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

Status gather(Worker& by, const RegionLayout& layout, NodeId node, WorkerId dead, LoggedSet& logged,
              VerbCounters& counters) {
  std::vector<RingEntry> entries;
  RDMACC_RETURN_IF_ERROR(read_ring(by, layout, node, dead, entries, counters));
  for (RingEntry& entry : entries) {
    Result<LogRecord> record = decode_log_record(entry.payload);
    if (!record.ok()) return record.status();
    if (worker_of_ctts(record->lock_ctts) != dead) {
      return Status(Code::kCorrupt, "a log record in another worker's ring");
    }
    if (entry.prepared && record->gtid.null()) {
      return Status(Code::kCorrupt, "a prepared log record that names no transaction");
    }
    // The views stay valid: moving a vector keeps its bytes in place.
    const uint64_t lock_ctts = record->lock_ctts;
    Logged& found =
        logged
            .try_emplace(lock_ctts,
                         Logged{std::move(entry.payload), std::move(record.value()), false, {}})
            .first->second;
    if (entry.prepared) {
      found.prepared_at.push_back(entry.address);
    } else {
      found.committed = true;
    }
  }
  return Status::ok_status();
}

Status install_all(const LoggedSet& logged, const InstallCommitted& install, ResolveReport& report,
                   VerbCounters& counters) {
  std::vector<const LogRecord*> by_stamp;
  for (const auto& [lock_ctts, found] : logged) {
    if (found.committed) by_stamp.push_back(&found.record);
  }
  std::stable_sort(by_stamp.begin(), by_stamp.end(),
                   [](const LogRecord* a, const LogRecord* b) { return a->stamp < b->stamp; });
  for (const LogRecord* record : by_stamp) {
    RDMACC_RETURN_IF_ERROR(install(*record, counters));
    ++report.committed;
    report.writes_installed += record->writes.size();
  }
  return Status::ok_status();
}

void list_in_doubt(const LoggedSet& logged, WorkerId dead, std::vector<InDoubt>& in_doubt) {
  for (const auto& [lock_ctts, found] : logged) {
    if (found.committed) continue;
    InDoubt& doubt = in_doubt.emplace_back();
    doubt.gtid = found.record.gtid;
    doubt.worker = dead;
    doubt.lock_ctts = lock_ctts;
    doubt.stamp = found.record.stamp;
    CHECK(!found.prepared_at.empty());
    doubt.node = found.prepared_at.front().node();
    doubt.entries = found.prepared_at;
  }
}

// All locks but those of transactions in doubt.
Status release_everywhere(Worker& by, const Topology& topology, WorkerId dead,
                          ResolveReport& report, VerbCounters& counters) {
  std::vector<Rpc::Call> calls(topology.nodes);
  for (NodeId node = 0; node < topology.nodes; ++node) {
    calls[node].to = topology.worker_of(node);
    calls[node].method = kMethodReleaseLocksOf;
    calls[node].request = request_about(dead);
    MessageWriter request(calls[node].request);
    request.u32(static_cast<uint32_t>(report.in_doubt.size()));
    for (const InDoubt& doubt : report.in_doubt) request.u64(doubt.lock_ctts);
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

Result<bool> may_have_left_reader_counts(Worker& by, const RegionLayout& layout, WorkerId dead,
                                         VerbCounters& counters) {
  VerbArena arena(by.pool());
  auto* line = arena.allocate_array<WorkerLine>(1);
  if (line == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(by.scheduler(), counters);
  batch.read(GlobalAddress::make(0, layout.worker_line(dead)), line, sizeof(*line));
  RDMACC_RETURN_IF_ERROR(batch.execute());
  return line->shares != 0 || line->reader_counts_lost != 0;
}

}  // namespace

Result<ResolveReport> resolve_worker(Worker& by, const Topology& topology, WorkerId dead,
                                     const InstallCommitted& install, VerbCounters& counters) {
  CHECK(install != nullptr);
  if (dead >= topology.workers_max || topology.is_node_worker(dead)) {
    return Status(Code::kInvalidArgument, "not a coordinator's worker id");
  }
  const RegionLayout layout(topology);
  ResolveReport report;
  RDMACC_RETURN_IF_ERROR(still_dead(by, dead));
  RDMACC_RETURN_IF_ERROR(fence_everywhere(by, topology, dead, counters));
  LoggedSet logged;
  for (NodeId node = 0; node < topology.nodes; ++node) {
    RDMACC_RETURN_IF_ERROR(gather(by, layout, node, dead, logged, counters));
  }
  RDMACC_RETURN_IF_ERROR(install_all(logged, install, report, counters));
  list_in_doubt(logged, dead, report.in_doubt);
  RDMACC_RETURN_IF_ERROR(still_dead(by, dead));
  RDMACC_RETURN_IF_ERROR(release_everywhere(by, topology, dead, report, counters));
  RDMACC_RETURN_IF_ERROR(still_dead(by, dead));
  // Its line stays inside the gate, so that nothing that it refers to is allocated again and
  // no other protocol comes to meet its locks.
  if (!report.in_doubt.empty()) return report;
  RDMACC_RETURN_IF_ERROR(empty_rings(by, layout, topology, dead, counters));
  const Result<bool> left = may_have_left_reader_counts(by, layout, dead, counters);
  if (!left.ok()) return left.status();
  report.left_reader_counts = left.value();
  if (!report.left_reader_counts)
    RDMACC_RETURN_IF_ERROR(Gate::clear_line(by, layout, dead, counters));
  return report;
}

}  // namespace rdmacc
