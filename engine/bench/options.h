#pragma once
#include <optional>
#include <string>

#include "engine/bench/load_options.h"
#include "engine/session.h"
#include "engine/workloads/settings.h"
#include "rdma/coroutine/verb_savings.h"
#include "rdma/open/fabric_kind.h"

namespace rdmacc {

// How transactions of a deterministic protocol come to their read and write sets.
enum class OrderedBy : uint8_t { kDeclared, kReconnaissance };
const char* ordered_by_name(OrderedBy by);

enum class ReportFormat : uint8_t { kText, kJson, kCsv };

struct BenchOptions {
  enum class Command : uint8_t { kRun, kEnumerate, kLimits };
  Command command = Command::kRun;
  std::string workload = "smallbank";
  WorkloadSettings settings;  // of the workload
  std::string preset;         // whose settings the rest has where no others were given; empty: none
  Protocol protocol = Protocol::kOcc;
  StagePlan plan;  // without the stages that the protocol does not have; kEnumerate: of no meaning
  bool auto_plan = false;  // each coordinator chooses a plan for each attempt
  LockMode lock_mode = LockMode::kExclusive;
  OrderedBy calvin = OrderedBy::kDeclared;  // where the workload can
  FabricKind fabric = FabricKind::kShm;
  // A cluster that is running: its config file, or its name on shm; both empty: the run has one of
  // its own.
  std::string config_file, cluster;
  TableOwner owner;  // of the run's tables; one that is given has them dropped after the run
  uint32_t nodes = 2, threads_per_node = 1;
  uint32_t threads = 1, coroutines = 8, replicas = 0;
  bool location_cache = true;
  VerbSavings savings;       // of posted verbs
  std::string verbs_device;  // names by commas; empty: the first that works
  uint16_t queue_pairs = 1;
  double seconds = 10;
  LoadOptions load;
  uint64_t memory_mb = 1024;                 // of each node
  std::string data_dir;                      // of the run's nodes; empty: rows are in memory alone
  bool crash = false;                        // the nodes are killed before the check
  uint64_t handwritten_records = 1'000'000;  // `limits`
  uint32_t spin_us = 50;
  uint64_t seed = 1;
  std::optional<uint64_t> verb_delays;  // seed of pauses between verbs, in every process
  ReportFormat format = ReportFormat::kText;
  std::string history_file;     // empty: none
  double progress_seconds = 0;  // 0: no progress lines
  bool full_check = true;       // at the end tables are verified, too (engine/verify)
  std::string page_file;        // of the run as a page for a browser; empty: none
  std::string command_line;     // as a shell would take it; empty: there was none
  // Of a sweep, this run's parameters and their values, as they were typed.
  std::vector<std::pair<std::string, std::string>> swept;

  bool joins_running_cluster() const { return !config_file.empty() || !cluster.empty(); }
  // Transactions whose keys are known run as procedures.
  bool declares() const;
  // How the pauses of `verb_delays` are distributed; empty: there are none.
  std::string verb_delays_text() const;
  Topology topology() const;
  WorkloadCluster workload_cluster() const;
  // kInvalidArgument: the settings do not go together, or not with the cluster.
  Result<std::unique_ptr<Workload>> make_workload() const;
};

// Options, or the exit code of a program that has said what is wrong (or printed its help).
struct ParsedOptions {
  std::optional<BenchOptions> options;
  int exit_code = 0;
};
constexpr int kExitUsage = 2;

// CHECKs that nothing is swept.
ParsedOptions parse_options(int argc, const char* const* argv);

// The runs of a command line: one, or all points of a sweep, each of which can be carried out;
// none: as above.
struct ParsedRuns {
  std::vector<BenchOptions> runs;
  int exit_code = 0;
};
ParsedRuns parse_runs(int argc, const char* const* argv);

}  // namespace rdmacc
