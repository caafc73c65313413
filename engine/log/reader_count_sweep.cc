#include "engine/log/reader_count_sweep.h"

#include <algorithm>

#include "engine/storage/layout/tuple.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

enum class Ask : uint8_t { kClear = 1, kAwait = 2 };

constexpr size_t kHeadersPerRound = 256;
constexpr uint64_t kPauseUs = 20;

// A clearing under way on this node.
class Clearing {
 public:
  explicit Clearing(bool& under_way) : under_way_(under_way) {
    CHECK(!under_way_);
    under_way_ = true;
  }
  ~Clearing() {
    CHECK(under_way_);  // one at a time
    under_way_ = false;
  }
  Clearing(const Clearing&) = delete;
  Clearing& operator=(const Clearing&) = delete;

 private:
  bool& under_way_;
};

// By CAS from what was seen. A count that changes meanwhile is one too many for a drained gate: it
// stays, and so does the reason for another sweep.
Status clear_round(Worker& worker, std::span<const GlobalAddress> headers, uint64_t& cleared) {
  VerbArena arena(worker.pool());
  auto* seen = arena.allocate_array<uint64_t>(headers.size());
  auto* was = arena.allocate_array<uint64_t>(headers.size());
  if (seen == nullptr || was == nullptr) {
    return out_of_registered_memory();
  }
  DoorbellBatch batch(worker.scheduler(), worker.counters());
  for (size_t i = 0; i < headers.size(); ++i) {
    batch.read(headers[i].plus(kOffsetOfLock), seen + i, 8);
  }
  RDMACC_RETURN_IF_ERROR(batch.execute());
  for (size_t i = 0; i < headers.size(); ++i) {
    if (!locked_shared(seen[i])) continue;
    batch.compare_swap(headers[i].plus(kOffsetOfLock), seen[i], 0, was + i);
  }
  RDMACC_RETURN_IF_ERROR(batch.execute());
  for (size_t i = 0; i < headers.size(); ++i) {
    if (!locked_shared(seen[i])) continue;
    if (was[i] != seen[i]) return Status(Code::kCorrupt, "a shared lock changed in a drained gate");
    cleared += seen[i];
  }
  return Status::ok_status();
}

Status clear_here(Worker& worker, StorageService& storage, uint64_t& cleared) {
  const std::vector<GlobalAddress> headers = storage.shared_headers();
  for (size_t at = 0; at < headers.size(); at += kHeadersPerRound) {
    const size_t count = std::min(kHeadersPerRound, headers.size() - at);
    RDMACC_RETURN_IF_ERROR(clear_round(worker, std::span(headers).subspan(at, count), cleared));
  }
  return Status::ok_status();
}

Result<uint64_t> ask_nodes(Worker& by, const Topology& topology, Ask ask, VerbCounters& counters) {
  std::vector<Rpc::Call> calls(topology.nodes);
  for (NodeId node = 0; node < topology.nodes; ++node) {
    calls[node].to = topology.worker_of(node);
    calls[node].method = kMethodClearReaderCounts;
    MessageWriter(calls[node].request).u8(static_cast<uint8_t>(ask));
  }
  by.rpc().call_all(calls, counters);
  uint64_t cleared = 0;
  for (Rpc::Call& call : calls) {
    if (!call.status.ok()) return std::move(call.status);
    MessageReader in(call.reply);
    cleared += in.u64();
    if (!in.at_end()) return Status(Code::kCorrupt, "reply to a sweep of shared locks");
  }
  return cleared;
}

}  // namespace

Result<uint64_t> clear_reader_counts(Worker& by, const Topology& topology, VerbCounters& counters) {
  return ask_nodes(by, topology, Ask::kClear, counters);
}

Status await_reader_count_clearing(Worker& by, const Topology& topology, VerbCounters& counters) {
  return ask_nodes(by, topology, Ask::kAwait, counters).status();
}

void serve_reader_count_sweep(Worker& worker, StorageService& storage, CallerFence& fence) {
  auto under_way = std::make_shared<bool>(false);
  worker.rpc().handle(
      kMethodClearReaderCounts,
      fence.guard([&worker, &storage, under_way](WorkerId, std::span<const std::byte> request,
                                                 Rpc::Bytes& reply) {
        MessageReader in(request);
        const auto ask = static_cast<Ask>(in.u8());
        if (!in.at_end() || (ask != Ask::kClear && ask != Ask::kAwait)) {
          return Status(Code::kCorrupt, "request to clear shared locks");
        }
        // One that a node 0 before this one has asked for.
        const uint64_t deadline_us = worker.endpoint().now_us() + kFenceUsMax;
        while (*under_way) {
          if (worker.endpoint().now_us() >= deadline_us) {
            return Status(Code::kTimeout, "another sweep of shared locks does not end");
          }
          worker.scheduler().sleep_for(kPauseUs);
        }
        uint64_t cleared = 0;
        if (ask == Ask::kClear) {
          const Clearing clearing(*under_way);
          RDMACC_RETURN_IF_ERROR(clear_here(worker, storage, cleared));
        }
        MessageWriter(reply).u64(cleared);
        return Status::ok_status();
      }));
}

// A node 0 that died in a sweep has left its line inside, so that the gate is closed: it stays so
// until no node clears counts any more.
Status ReaderCountSweeper::recover(VerbCounters& counters) {
  const Result<bool> abandoned = drain_.was_abandoned();
  if (!abandoned.ok()) return abandoned.status();
  if (abandoned.value()) {
    RDMACC_RETURN_IF_ERROR(await_reader_count_clearing(worker_, topology_, counters));
    RDMACC_RETURN_IF_ERROR(drain_.clear_abandoned());
  }
  recovered_ = true;
  return Status::ok_status();
}

Result<bool> ReaderCountSweeper::needed(std::span<const WorkerId> ended) {
  CHECK(recovered_);
  if (!ended.empty()) return true;
  Result<GateDrain::View> view = drain_.look();
  if (!view.ok()) return view.status();
  return std::any_of(view->lines.begin(), view->lines.end(), [&](const WorkerLine& line) {
    return line.reader_counts_lost > view->gate.sweeps;
  });
}

bool ReaderCountSweeper::all_nodes_up() const {
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    if (worker_.endpoint().incarnation_of(topology_.worker_of(node)) == 0) return false;
  }
  return true;
}

Result<bool> ReaderCountSweeper::sweep_if_needed(std::span<const WorkerId> ended,
                                                 VerbCounters& counters) {
  if (!recovered_) RDMACC_RETURN_IF_ERROR(recover(counters));
  if (worker_.endpoint().now_us() < not_before_us_) return false;
  const Result<bool> wanted = needed(ended);
  if (!wanted.ok() || !wanted.value()) return wanted;
  if (!all_nodes_up()) return Status(Code::kUnavailable, "a node is down");
  const Status closed = drain_.close(ended, drain_us_max_);
  if (closed.code() == Code::kTimeout) {
    not_before_us_ = worker_.endpoint().now_us() + kPutOffFactor * drain_us_max_;
    return false;
  }
  RDMACC_RETURN_IF_ERROR(closed);
  const Result<uint64_t> cleared = clear_reader_counts(worker_, topology_, counters);
  const Status opened = drain_.open(cleared.ok());
  if (!cleared.ok()) return cleared.status();
  RDMACC_RETURN_IF_ERROR(opened);
  ++sweeps_;
  reader_counts_cleared_ += cleared.value();
  return true;
}

}  // namespace rdmacc
