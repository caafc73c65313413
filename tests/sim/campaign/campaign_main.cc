// rdmacc_campaign: many seeds of every protocol and hybrid code in the simulator, in several
// processes; one table of what was run, and the command that repeats what failed.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/protocols/registry.h"
#include "tests/sim/campaign.h"
#include "tests/sim/campaign/fault_table.h"
#include "tests/sim/directed.h"
#include "tests/sim/sim_farm.h"

namespace rdmacc {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// The share of `make check`: every code of the protocol with the most of them, and so many runs
// that every operation meets every change of an index.
constexpr uint64_t kCheckSeeds = 104;
constexpr uint64_t kSeedsDefault = 2'000;
constexpr uint64_t kSeedsMax = 100'000'000;
constexpr double kProgressSeconds = 15;

// Runs of one sort.
struct Sort {
  const char* flag;
  const char* text;
  SimScenario (*scenario)(const CampaignVariant& variant, uint64_t seed);
};
constexpr Sort kSorts[] = {
    {"--loads", "bulk loads beside splits alone", loads_scenario},
    {"--fresh", "tables that are made and filled, alone", fresh_scenario},
    {"--outside", "rows that refer to something outside of the engine, alone", outside_scenario},
    {"--locks", "rows that are locked early, alone", locks_scenario},
    {"--packed", "many transactions on two keys alone", packed_scenario},
    {"--directed", "runs that crowd rare moments alone", directed_scenario},
};

struct Flags {
  uint64_t seeds = kSeedsDefault, first = 1;
  size_t jobs = 1;
  std::string protocols = "all", json_file, history_file, aim;
  bool check_share = false, faults = false;
  const Sort* sort = nullptr;  // of runs, alone; nullptr: all that is drawn
};

// What the runs of one variant came to.
struct Tally {
  uint64_t runs = 0, failed = 0, committed = 0, aborted = 0, unknown = 0, resolved = 0, events = 0;
  uint64_t violations = 0, runs_with_violations = 0;
  uint64_t loads = 0;  // of `committed`, bulk loads

  void add(const SimResult& result, bool of_loads) {
    ++runs;
    loads += of_loads ? result.committed : 0;
    failed += result.problem.empty() ? 0 : 1;
    committed += result.committed;
    aborted += result.aborted;
    unknown += result.unknown;
    resolved += result.resolved;
    events += result.events;
    violations += result.real_time_violations;
    runs_with_violations += result.real_time_violations > 0 ? 1 : 0;
  }
};

class Campaign {
 public:
  Campaign(const Flags& flags, std::vector<CampaignVariant> variants)
      : flags_(flags), variants_(std::move(variants)), tallies_(variants_.size()) {}

  bool run() {
    const SimFarmOptions options{.processes = flags_.jobs};
    const bool ended = run_scenarios(
        count(), [this](size_t index) { return scenario(index); }, options,
        [this](const SimResult& result) { return take(result); });
    if (!ended && failures_.empty()) failures_.push_back({{"problem", "no process could be run"}});
    if (failures_.empty()) check_structure();
    return failures_.empty();
  }

  void print() const;
  void write_json(const std::string& name) const;

 private:
  // The variants take turns, so that what ends early has run all of them.
  size_t count() const { return flags_.seeds * variants_.size(); }
  const CampaignVariant& variant(size_t index) const { return variants_[index % variants_.size()]; }
  SimScenario scenario(size_t index) const {
    const uint64_t seed = flags_.first + index / variants_.size();
    const auto draw = flags_.sort != nullptr ? flags_.sort->scenario : campaign_scenario;
    return draw(variant(index), seed);
  }

  void check_structure();
  bool take(const SimResult& result);
  void report_progress();
  Json structure_json() const;
  void fail(const SimResult& result);

  const Flags& flags_;
  const std::vector<CampaignVariant> variants_;
  std::vector<Tally> tallies_;
  StructureCounts structure_;
  Json failures_ = Json::array();
  uint64_t done_ = 0;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point reported_ = begin_;
};

// What can happen has happened, when enough was run.
void Campaign::check_structure() {
  if (flags_.sort != nullptr || flags_.seeds < kCheckSeeds ||
      variants_.size() < all_campaign_variants().size())
    return;
  const std::string zeros = structure_.zeros();
  if (zeros.empty()) return;
  std::printf("FAILED: never happened: %s\n", zeros.c_str());
  failures_.push_back({{"problem", "never happened: " + zeros}});
}

bool Campaign::take(const SimResult& result) {
  const bool of_loads = scenario(result.index).load == SimScenario::Load::kLoads;
  tallies_[result.index % variants_.size()].add(result, of_loads);
  structure_.add(result.structure.cells());
  ++done_;
  if (!result.problem.empty()) {
    fail(result);
    return false;
  }
  report_progress();
  return true;
}

void Campaign::report_progress() {
  const auto now = Clock::now();
  if (std::chrono::duration<double>(now - reported_).count() < kProgressSeconds) return;
  reported_ = now;
  std::printf("%lu of %zu runs in %.0f s\n", done_, count(),
              std::chrono::duration<double>(now - begin_).count());
  std::fflush(stdout);
}

void Campaign::fail(const SimResult& result) {
  const SimScenario failed = scenario(result.index);
  const std::string name = variant(result.index).name();
  const std::string command = "build/release/tests/rdmacc_campaign --protocols=" + name +
                              " --first=" + std::to_string(failed.seed) + " --seeds=1" +
                              (flags_.sort != nullptr ? std::string(" ") + flags_.sort->flag : "");
  std::printf("FAILED %s\n%s\nrepeat: %s\n", describe(variant(result.index), failed).c_str(),
              result.problem.c_str(), command.c_str());
  std::fflush(stdout);
  failures_.push_back({{"protocol", name},
                       {"seed", failed.seed},
                       {"problem", result.problem},
                       {"command", command}});
  if (flags_.history_file.empty()) return;
  SimRun again(failed);
  static_cast<void>(again.run());
  std::ofstream(flags_.history_file) << again.history_text();
}

void Campaign::print() const {
  std::printf("%-14s %8s %6s %11s %11s %8s %9s  %s\n", "protocol", "runs", "codes", "committed",
              "aborted", "unknown", "resolved", "against real time");
  uint64_t failed = 0, loads_min = UINT64_MAX;
  Tally all;
  for (size_t v = 0; v < variants_.size(); ++v) {
    const Tally& tally = tallies_[v];
    const size_t codes = std::min<size_t>(variants_[v].codes().size(), tally.runs);
    const std::string real_time = strictly_serializable(variants_[v].protocol)
                                      ? "none, and none is allowed"
                                      : std::to_string(tally.violations) + " in " +
                                            std::to_string(tally.runs_with_violations) + " runs";
    std::printf("%-14s %8lu %6zu %11lu %11lu %8lu %9lu  %s\n", variants_[v].name().c_str(),
                tally.runs, codes, tally.committed, tally.aborted, tally.unknown, tally.resolved,
                real_time.c_str());
    failed += tally.failed > 0 ? 1 : 0;
    all.committed += tally.committed;
    all.events += tally.events;
    all.loads += tally.loads;
    loads_min = std::min(loads_min, tally.loads);
  }
  std::printf("\n%s\n", structure_.table().c_str());
  std::printf("%lu runs, %lu transactions committed, %lu events in %.0f s%s\n", done_,
              all.committed, all.events,
              std::chrono::duration<double>(Clock::now() - begin_).count(),
              failures_.empty() ? ": no cycle, no hang, no lock left, every row whole" : "");
  if (flags_.sort != nullptr && flags_.sort->scenario == loads_scenario) {
    std::printf("%lu of them bulk loads, at least %lu under each protocol\n", all.loads, loads_min);
  }
  const uint64_t others = failed == 0 && !failures_.empty() ? 1 : 0;
  std::printf("%zu protocols passed, %lu failed\n", variants_.size() - failed, failed + others);
}

Json Campaign::structure_json() const {
  Json operations;
  for (size_t op = 0; op < kDoorOps; ++op) {
    for (size_t change = 0; change < kStructureChanges; ++change) {
      const auto beside = static_cast<StructureChange>(change);
      operations[name_of(static_cast<DoorOp>(op))][name_of(beside)] =
          structure_.at(static_cast<DoorOp>(op), beside);
    }
  }
  return operations;
}

void Campaign::write_json(const std::string& name) const {
  Json protocols = Json::array();
  for (size_t v = 0; v < variants_.size(); ++v) {
    const Tally& tally = tallies_[v];
    protocols.push_back({{"protocol", variants_[v].name()},
                         {"runs", tally.runs},
                         {"committed", tally.committed},
                         {"loads", tally.loads},
                         {"aborted", tally.aborted},
                         {"unknown", tally.unknown},
                         {"resolved_coordinators", tally.resolved},
                         {"events", tally.events},
                         {"real_time_violations", tally.violations}});
  }
  const Json summary{{"first_seed", flags_.first},
                     {"runs", done_},
                     {"protocols", protocols},
                     {"structure", structure_json()},
                     {"failures", failures_}};
  std::ofstream(name) << summary.dump(2) << "\n";
}

int run_faults(const Flags& flags, std::vector<CampaignVariant> variants) {
  FaultTable table({flags.seeds, flags.first, flags.jobs, flags.aim}, std::move(variants));
  if (table.cells() == 0) {
    std::fprintf(stderr, "rdmacc_campaign: there is no fault \"%s\"\n", flags.aim.c_str());
    return 2;
  }
  const bool passed = table.run();
  table.print();
  if (!flags.json_file.empty()) table.write_json(flags.json_file);
  return passed ? 0 : 1;
}

int run_main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Runs seeds of every protocol and hybrid code in the simulator."};
  app.add_option("--seeds", flags.seeds, "of each protocol")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, kSeedsMax));
  app.add_option("--first", flags.first, "the first of them")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, kSeedsMax));
  app.add_option("--protocols", flags.protocols, "all, or a list")->capture_default_str();
  app.add_option("--jobs", flags.jobs, "processes")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{256}));
  app.add_flag("--check-share", flags.check_share, "the fixed share of make check");
  std::vector<CLI::Option*> sorts;
  for (const Sort& sort : kSorts) {
    CLI::Option* option = app.add_flag_callback(
        sort.flag, [&flags, &sort] { flags.sort = &sort; }, sort.text);
    for (CLI::Option* other : sorts) option->excludes(other);
    sorts.push_back(option);
  }
  app.add_flag("--faults", flags.faults,
               "one fault at one step of one stage in each run, as a table")
      ->excludes(sorts.front());
  app.add_option("--aim", flags.aim, "of --faults: one alone, as a failure prints it");
  app.add_option("--json", flags.json_file, "write a summary there");
  app.add_option("--history", flags.history_file, "keep the failed run's history there");
  CLI11_PARSE(app, argc, argv);
  if (flags.check_share) {
    flags.first = 1;
    flags.seeds = kCheckSeeds;
  }
  Result<std::vector<CampaignVariant>> variants = parse_campaign_variants(flags.protocols);
  if (!variants.ok()) {
    std::fprintf(stderr, "rdmacc_campaign: %s\n", variants.status().message().c_str());
    return 2;
  }
  if (flags.faults) return run_faults(flags, std::move(*variants));
  Campaign campaign(flags, std::move(*variants));
  const bool passed = campaign.run();
  campaign.print();
  if (!flags.json_file.empty()) campaign.write_json(flags.json_file);
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace rdmacc

int main(int argc, char** argv) { return rdmacc::run_main(argc, argv); }
