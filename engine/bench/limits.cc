#include "engine/bench/limits.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/bench/handwritten.h"
#include "engine/bench/loopback_ping.h"
#include "engine/bench/machine_limits.h"
#include "engine/bench/node_processes.h"
#include "rdma/base/random.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {
namespace {

constexpr MethodId kMethodEcho = 1;
constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kTcpRegionBytes = 16ull << 20;
constexpr uint64_t kReads = 200'000;  // of one measurement
constexpr uint64_t kCalls = 20'000;
constexpr uint64_t kYields = 400'000;
constexpr uint32_t kInFlight = 8;
constexpr uint32_t kSpinUs = 1'000;
constexpr double kHandwrittenSeconds = 3;

// What a node does here: back its region, answer echoes.
Status serve_echo(Fabric& fabric, NodeId node, const std::atomic<bool>& stop,
                  const std::function<void()>& ready) {
  Result<std::unique_ptr<Endpoint>> endpoint = fabric.join_as_node(node, 0);
  if (!endpoint.ok()) return endpoint.status();
  Worker worker(std::move(*endpoint));
  const uint64_t bytes = fabric.topology().region_bytes;
  RDMACC_RETURN_IF_ERROR(worker.endpoint().back_region(0, bytes));
  clear_memory(worker.endpoint().local_region(), bytes, stop);
  worker.rpc().handle(kMethodEcho,
                      [](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
                        reply.assign(request.begin(), request.end());
                        return Status();
                      });
  ready();
  worker.scheduler().run_until([&stop] { return stop.load(); }, kSpinUs);
  return Status();
}

class OurCosts {
 public:
  OurCosts(std::unique_ptr<Endpoint> endpoint, const Topology& topology,
           const std::atomic<bool>& interrupted)
      : worker_(std::move(endpoint)),
        lines_(topology.region_bytes / kLineBytes),
        interrupted_(interrupted) {}

  // Maps every page here, so that no measurement pays for that.
  Status touch_all() {
    return measure(lines_ * kLineBytes / kPageBytes, kInFlight,
                   [this](uint64_t i, std::byte* line, VerbCounters& counters) {
                     return read(i * kPageBytes, line, counters);
                   })
        .status();
  }
  Result<double> read_ns(uint32_t in_flight) {
    return per_operation(kReads, in_flight,
                         [this](uint64_t, std::byte* line, VerbCounters& counters) {
                           return read(random_.below(lines_) * kLineBytes, line, counters);
                         });
  }
  Result<double> compare_swap_ns() {
    return per_operation(kReads, 1, [this](uint64_t, std::byte* line, VerbCounters& counters) {
      DoorbellBatch batch(worker_.scheduler(), counters);
      batch.compare_swap(GlobalAddress::make(0, random_.below(lines_) * kLineBytes), 0, 0,
                         reinterpret_cast<uint64_t*>(line));
      return batch.execute();
    });
  }
  Result<double> call_ns() {
    return per_operation(kCalls, 1, [this](uint64_t, std::byte*, VerbCounters& counters) {
      Rpc::Call call;
      call.to = 0;
      call.method = kMethodEcho;
      call.request.resize(kLineBytes);
      return worker_.rpc().call_one(call, counters);
    });
  }
  Result<double> yield_ns() {
    return per_operation(kYields, kInFlight, [this](uint64_t, std::byte*, VerbCounters&) {
      worker_.scheduler().yield();
      return Status();
    });
  }

 private:
  using Operation = std::function<Status(uint64_t number, std::byte* line, VerbCounters&)>;

  Status read(uint64_t offset, std::byte* line, VerbCounters& counters) {
    DoorbellBatch batch(worker_.scheduler(), counters);
    batch.read(GlobalAddress::make(0, offset), line, kLineBytes);
    return batch.execute();
  }

  // The best of several measurements of `count` operations, `in_flight` at a time.
  Result<double> per_operation(uint64_t count, uint32_t in_flight, const Operation& operation) {
    Result<double> best = measure(count, in_flight, operation);
    for (uint32_t i = 1; i < kMeasurements && best.ok(); ++i) {
      const Result<double> again = measure(count, in_flight, operation);
      if (!again.ok() || again.value() < best.value()) best = again;
    }
    return best;
  }

  Result<double> measure(uint64_t count, uint32_t in_flight, const Operation& operation) {
    uint64_t started = 0;
    uint32_t running = in_flight;
    Status failure;
    const uint64_t start_ns = monotonic_ns();
    for (uint32_t c = 0; c < in_flight; ++c) {
      CHECK(worker_.scheduler().spawn([&] {
        VerbArena arena(worker_.pool());
        std::byte* line = arena.allocate(kLineBytes);
        VerbCounters counters;
        while (started < count && failure.ok() && !interrupted_.load()) {
          const Status status = operation(started++, line, counters);
          if (!status.ok()) failure = status;
        }
        --running;
      }));
    }
    worker_.scheduler().run_until([&running] { return running == 0; }, kSpinUs);
    if (!failure.ok()) return failure;
    return static_cast<double>(monotonic_ns() - start_ns) / static_cast<double>(count);
  }

  Worker worker_;
  const uint64_t lines_;
  const std::atomic<bool>& interrupted_;
  Random random_{4};
};

// One thing that both do.
struct Pair {
  const char* name;
  const char* machine_name;
  const char* key;  // in JSON
  double our_ns, machine_ns;
};

// The echo of a node that is reached over TCP, and a bare ping-pong beside it.
Result<Pair> measure_tcp(const std::atomic<bool>& interrupted) {
  const Result<double> bare_ns = loopback_round_trip_ns(kLineBytes, interrupted);
  if (!bare_ns.ok()) return bare_ns.status();
  Topology topology;
  topology.nodes = 1;
  topology.workers_max = 3;
  topology.region_bytes = kTcpRegionBytes;
  FabricChoice choice;
  choice.kind = FabricKind::kTcp;
  Result<std::unique_ptr<NodeProcesses>> node =
      NodeProcesses::start_with(choice, topology, serve_echo, interrupted);
  if (!node.ok()) return node.status();
  Result<std::unique_ptr<Endpoint>> endpoint = (*node)->fabric().join();
  if (!endpoint.ok()) return endpoint.status();
  const Result<double> ours_ns = OurCosts(std::move(*endpoint), topology, interrupted).call_ns();
  if (!ours_ns.ok()) return ours_ns.status();
  return Pair{"RPC round trip, tcp", "ping-pong over loopback TCP", "rpc_tcp", ours_ns.value(),
              bare_ns.value()};
}

void print_pair(const Pair& pair) {
  std::printf("%-38s %8.1f ns   %-38s %8.1f ns   ratio %.2f\n", pair.name, pair.our_ns,
              pair.machine_name, pair.machine_ns, pair.our_ns / pair.machine_ns);
  std::fflush(stdout);
}

Result<std::vector<Pair>> measure_pairs(bool print, const std::atomic<bool>& interrupted) {
  const uint64_t bytes = measured_memory_bytes();
  const Result<MachineLimits> measured = measure_machine(bytes, interrupted);
  if (!measured.ok()) return measured.status();
  const MachineLimits& machine = measured.value();

  Topology topology;
  topology.nodes = 1;
  topology.workers_max = 3;
  topology.region_bytes = bytes;
  Result<std::unique_ptr<NodeProcesses>> node =
      NodeProcesses::start_with(FabricChoice(), topology, serve_echo, interrupted);
  if (!node.ok()) return node.status();
  Result<std::unique_ptr<Endpoint>> endpoint = (*node)->fabric().join();
  if (!endpoint.ok()) return endpoint.status();
  OurCosts ours(std::move(*endpoint), topology, interrupted);
  RDMACC_RETURN_IF_ERROR(ours.touch_all());

  if (print) {
    std::printf("random 64-byte accesses over %llu MB; ratio = ours / the machine's\n",
                static_cast<unsigned long long>(bytes >> 20));
  }
  std::vector<Pair> pairs;
  const auto add = [&](Pair pair, const Result<double>& our_ns) {
    if (interrupted.load()) return Status(Code::kCancelled, "interrupted");
    if (!our_ns.ok()) return our_ns.status();
    pair.our_ns = our_ns.value();
    pairs.push_back(pair);
    if (print) print_pair(pair);
    return Status();
  };
  RDMACC_RETURN_IF_ERROR(add({"one-sided READ, 1 in flight", "dependent random read", "read_1", 0,
                              machine.dependent_read_ns},
                             ours.read_ns(1)));
  RDMACC_RETURN_IF_ERROR(add({"one-sided READ, 8 in flight", "independent random read", "read_8", 0,
                              machine.independent_read_ns},
                             ours.read_ns(kInFlight)));
  RDMACC_RETURN_IF_ERROR(add({"one-sided CAS, 1 in flight", "CAS on a random line", "compare_swap",
                              0, machine.compare_swap_ns},
                             ours.compare_swap_ns()));
  RDMACC_RETURN_IF_ERROR(add(
      {"RPC round trip", "ring round trip, two processes", "rpc", 0, machine.ring_round_trip_ns},
      ours.call_ns()));
  RDMACC_RETURN_IF_ERROR(
      add({"scheduler yield", "coroutine switch", "yield", 0, machine.coroutine_switch_ns},
          ours.yield_ns()));
  const Result<Pair> tcp = measure_tcp(interrupted);
  if (!tcp.ok()) return tcp.status();
  RDMACC_RETURN_IF_ERROR(add(tcp.value(), tcp.value().our_ns));
  return pairs;
}

}  // namespace

Status print_limits(ReportFormat format, uint64_t records, const std::atomic<bool>& interrupted) {
  const bool text = format == ReportFormat::kText;
  const Result<std::vector<Pair>> pairs = measure_pairs(text, interrupted);
  if (!pairs.ok()) return pairs.status();
  const Result<double> by_hand =
      handwritten_transactions_per_second(records, kHandwrittenSeconds, interrupted);
  if (interrupted.load()) return Status(Code::kCancelled, "interrupted");
  if (!by_hand.ok()) return by_hand.status();
  if (text) {
    std::printf("%-38s %8.0f a second (YCSB, NOWAIT, %llu records)\n",
                "transaction written by hand", by_hand.value(),
                static_cast<unsigned long long>(records));
    return Status();
  }
  nlohmann::ordered_json limits;
  for (const Pair& pair : pairs.value()) {
    limits[pair.key] = {{"ours_ns", pair.our_ns}, {"machine_ns", pair.machine_ns}};
  }
  limits["handwritten_transactions_per_second"] = by_hand.value();
  std::printf("%s\n", limits.dump(2).c_str());
  return Status();
}

}  // namespace rdmacc
