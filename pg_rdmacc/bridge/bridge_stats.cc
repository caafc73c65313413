// What views show, of engine_bridge.h: statistics in the server's shared memory, the locks and the
// gate.
#include "pg_rdmacc/bridge/bridge_stats.h"

#include <algorithm>

#include "engine/protocols/registry.h"
#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

// Set in the postmaster before it forks.
SharedStats* statistics = nullptr;

constexpr double kNsPerUs = 1000;

template <typename Visit>
void for_each_stage(Protocol protocol, Visit&& visit) {
  for (uint32_t i = 0; i < kStageCount; ++i) {
    if ((stages_of(protocol) & (1u << i)) != 0) visit(static_cast<Stage>(1u << i));
  }
}

// A row for each protocol; how many were filled in.
template <typename Stat, typename Make>
size_t of_each_protocol(Stat* out, size_t max, const Make& make) {
  CHECK(out != nullptr && max > 0);
  size_t count = 0;
  if (statistics == nullptr) return count;
  for (const Protocol protocol : available_protocols()) {
    if (count == max) break;
    out[count++] = make(protocol);
  }
  return count;
}

BridgeStageStat stage_stat(Protocol protocol, Stage stage, Primitive primitive) {
  const SharedHistogram::Summary summary = statistics->stage(protocol, stage, primitive);
  return {.protocol = static_cast<int>(protocol),
          .stage = stage_name(stage),
          .primitive = primitive_name(primitive),
          .count = summary.count,
          .mean_us = summary.mean_ns / kNsPerUs,
          .p50_us = summary.p50_ns / kNsPerUs,
          .p99_us = summary.p99_ns / kNsPerUs};
}

int64_t age_us(uint64_t now_us, uint64_t since_us) {
  return now_us > since_us ? static_cast<int64_t>(now_us - since_us) : 0;
}

BridgeLock lock_row(const LockedHeader& header, const LockHold& hold, uint64_t now_us) {
  return {.table = header.table,
          .database = header.database,
          .relfilenode = header.relfilenode,
          .gap = header.gap,
          .key_hash = header.key_hash,
          .mode = lock_mode_name(hold.shared ? LockMode::kShared : LockMode::kExclusive),
          .granted = hold.granted,
          .holders = hold.holders,
          .worker = hold.worker.has_value() ? *hold.worker : -1,
          .age_us = hold.since_us.has_value() ? age_us(now_us, *hold.since_us) : -1};
}

// The control area's numbers are one more than a protocol's, 0 = none; a flag asks for exclusive
// mode.
int protocol_number(uint64_t in_line) {
  return static_cast<int>(in_line & ~uint64_t{kAskedExclusive}) - 1;
}

void note_line(std::vector<BridgeGateSession>& sessions, size_t worker, const WorkerLine& line,
               uint64_t now_us) {
  if (line.inside != 0) {
    sessions.push_back({.worker = static_cast<int>(worker),
                        .protocol = protocol_number(line.inside),
                        .inside = true,
                        .waiting_us = 0});
  }
  if (line.waiting_for != 0) {
    sessions.push_back({.worker = static_cast<int>(worker),
                        .protocol = protocol_number(line.waiting_for),
                        .inside = false,
                        .waiting_us = age_us(now_us, line.waiting_since_us)});
  }
}

}  // namespace

SharedStats* shared_stats() { return statistics; }

}  // namespace rdmacc::bridge

using rdmacc::Protocol;
using rdmacc::Session;
using rdmacc::Status;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::statistics;

// ---- Statistics

size_t bridge_stats_bytes(void) { return sizeof(rdmacc::SharedStats); }

void bridge_stats_format(void* memory) { rdmacc::SharedStats::format(memory); }

void bridge_stats_use(void* memory) { statistics = static_cast<rdmacc::SharedStats*>(memory); }

void bridge_stats_reset(void) {
  if (statistics != nullptr) statistics->reset();
}

size_t bridge_stat_stages(BridgeStageStat* out, size_t max) {
  CHECK(out != nullptr && max > 0);
  size_t count = 0;
  if (statistics == nullptr) return count;
  for (const Protocol protocol : rdmacc::available_protocols()) {
    rdmacc::bridge::for_each_stage(protocol, [&](rdmacc::Stage stage) {
      for (size_t primitive = 0; primitive < 2 && count < max; ++primitive) {
        out[count++] =
            rdmacc::bridge::stage_stat(protocol, stage, static_cast<rdmacc::Primitive>(primitive));
      }
    });
  }
  return count;
}

size_t bridge_stat_aborts(BridgeAbortStat* out, size_t max) {
  CHECK(out != nullptr && max > 0);
  size_t count = 0;
  if (statistics == nullptr) return count;
  for (const Protocol protocol : rdmacc::available_protocols()) {
    for (size_t i = 0; i < rdmacc::SharedStats::kReasons && count < max; ++i) {
      const auto reason = static_cast<rdmacc::AbortReason>(i);
      out[count++] = {.protocol = static_cast<int>(protocol),
                      .reason = rdmacc::abort_reason_name(reason),
                      .count = statistics->aborts(protocol, reason)};
    }
  }
  return count;
}

size_t bridge_stat_plans(BridgePlanStat* out, size_t max) {
  CHECK(out != nullptr && max > 0);
  size_t count = 0;
  if (statistics == nullptr) return count;
  for (const Protocol protocol : rdmacc::available_protocols()) {
    for (uint16_t code = 0; code < rdmacc::SharedStats::kPlans && count < max; ++code) {
      const auto plan = statistics->plan(protocol, rdmacc::StagePlan(code));
      if (plan.transactions == 0) continue;
      out[count++] = {.protocol = static_cast<int>(protocol),
                      .code = code,
                      .transactions = plan.transactions,
                      .committed = plan.committed,
                      .explored = plan.explored};
    }
  }
  return count;
}

size_t bridge_stat_protocols(BridgeProtocolStat* out, size_t max) {
  return rdmacc::bridge::of_each_protocol(out, max, [](Protocol protocol) -> BridgeProtocolStat {
    const auto all = statistics->protocol(protocol);
    return {.protocol = static_cast<int>(protocol),
            .transactions = all.transactions,
            .committed = all.committed,
            .verbs = all.verbs,
            .nodes = all.nodes,
            .with_nodes = all.with_nodes,
            .stage_ns = all.stage_ns,
            .committed_stage_ns = all.committed_stage_ns};
  });
}

size_t bridge_stat_retries(BridgeRetryStat* out, size_t max) {
  return rdmacc::bridge::of_each_protocol(out, max, [](Protocol protocol) -> BridgeRetryStat {
    const auto retries = statistics->retries(protocol);
    return {.protocol = static_cast<int>(protocol),
            .retries = retries.retries,
            .given_up = retries.given_up,
            .replayed_statements = retries.replayed_statements,
            .replay_us = retries.replay_us,
            .replays_differed = retries.replays_differed};
  });
}

void bridge_stat_add_retry(int protocol, bool gives_up) {
  if (statistics == nullptr || protocol < 0) return;
  CHECK(protocol < static_cast<int>(rdmacc::kProtocolCount));
  statistics->add_retry(static_cast<Protocol>(protocol), gives_up);
}

void bridge_stat_add_replay(int protocol, uint64_t statements, uint64_t us, bool differed) {
  if (statistics == nullptr || protocol < 0) return;
  CHECK(protocol < static_cast<int>(rdmacc::kProtocolCount));
  statistics->add_replay(static_cast<Protocol>(protocol), statements, us, differed);
}

// ---- The cluster

void bridge_start_locks(int node, uint64_t from) {
  rdmacc::bridge::start([node, from](Session& session) -> Status {
    Attachment& at = *attached();
    at.locks.clear();
    at.locks_next = 0;
    CHECK(node >= 0 && node < session.topology().nodes);
    auto locked =
        session.locked_headers(static_cast<rdmacc::NodeId>(node), from, BRIDGE_SILENCE_US_MAX);
    at.node_answered = locked.status().code() != rdmacc::Code::kTimeout;
    if (!at.node_answered) return Status();
    if (!locked.ok()) return locked.status();
    const uint64_t now_us = at.coordinator->worker().endpoint().now_us();
    for (const rdmacc::LockedHeader& header : locked->headers) {
      for (const rdmacc::LockHold& hold : rdmacc::holds_of(header)) {
        at.locks.push_back(rdmacc::bridge::lock_row(header, hold, now_us));
      }
    }
    at.locks_next = locked->next;
    return Status();
  });
}

bool bridge_node_answered(void) {
  const Attachment* at = attached();
  return at != nullptr && at->node_answered;
}

size_t bridge_locks(const BridgeLock** locks, uint64_t* next) {
  const Attachment* at = attached();
  *locks = at != nullptr ? at->locks.data() : nullptr;
  *next = at != nullptr ? at->locks_next : 0;
  return at != nullptr ? at->locks.size() : 0;
}

void bridge_start_gate(BridgeGate* out) {
  rdmacc::bridge::start([out](Session& session) -> Status {
    Attachment& at = *attached();
    at.gate_sessions.clear();
    rdmacc::GateLine gate;
    std::vector<rdmacc::WorkerLine> lines;
    const Status status = session.gate_state(&gate, &lines);
    if (!status.ok()) return status;
    const rdmacc::GateWord word = rdmacc::GateWord::unpack(gate.word);
    *out = {.open = rdmacc::bridge::protocol_number(word.open),
            .next = rdmacc::bridge::protocol_number(word.next),
            .exclusive_worker = static_cast<int>(word.exclusive) - 1,
            .exclusive_entries = gate.exclusive_entries,
            .switches = gate.switches,
            .switch_us_sum = gate.switch_us_sum,
            .switch_us_max = gate.switch_us_max};
    const uint64_t now_us = at.coordinator->worker().endpoint().now_us();
    for (size_t worker = 0; worker < lines.size(); ++worker) {
      rdmacc::bridge::note_line(at.gate_sessions, worker, lines[worker], now_us);
    }
    return Status();
  });
}

size_t bridge_gate_sessions(const BridgeGateSession** sessions) {
  const Attachment* at = attached();
  *sessions = at != nullptr ? at->gate_sessions.data() : nullptr;
  return at != nullptr ? at->gate_sessions.size() : 0;
}
