// rdmacc_mutants: runs of the campaign in this process, with one planted fault or with none.
//
//   rdmacc_mutants reach --seeds=N [--first=1] [--step=1] [--protocols=all]
//       one line of JSON for each run, without a fault: how often it came to which faults, and how
//       long it is
//   rdmacc_mutants run --fault=N --cpu-s=20  < lines "variant seed events_max"
//       these runs in their order, as far as none fails and the time lasts; one line for each
//
// A run that crashes or never ends takes the process with it: its line is missing.

#include <sys/time.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/protocols/registry.h"
#include "tests/mutation/planted.h"
#include "tests/sim/campaign.h"
#include "tests/sim/directed.h"
#include "tests/sim/sim_farm.h"

namespace rdmacc {

uint32_t planted::chosen = 0;
std::array<uint64_t, planted::kFaultsMax> planted::reached{};

namespace {

using Json = nlohmann::json;

// Of one run; the longest without a fault takes less than a second.
constexpr time_t kRunCpuSecondsMax = 8;

// Of seven runs one loads rows beside splits, two have deaths when log entries are written, one of
// them with long rows and the other with transactions that are decided from outside; three crowd
// moments that are rare (directed.h), and one is the campaign's.
constexpr uint64_t kTurns = 7, kDirected = 3;

// Of a seed whose turn it is.
uint64_t directed_seed(uint64_t seed) {
  return seed / kTurns * kDirected + seed % kTurns - (kTurns - kDirected);
}

// Runs of one kind crowd the same moments.
std::string kind_of(uint64_t seed) {
  const uint64_t turn = seed % kTurns;
  return turn < kTurns - kDirected
             ? "turn " + std::to_string(turn)
             : "directed " + std::to_string(directed_seed(seed) % kDirectedKinds);
}

SimScenario scenario_of(const CampaignVariant& variant, uint64_t seed) {
  if (seed % kTurns == 0) return loads_scenario(variant, seed);
  if (seed % kTurns >= kTurns - kDirected) return directed_scenario(variant, directed_seed(seed));
  // Of the campaign's own every third makes tables.
  if (seed % kTurns == 3 && seed / kTurns % 3 == 2) return fresh_scenario(variant, seed);
  SimScenario scenario = campaign_scenario(variant, seed);
  // What takes long is more frequent here than in the campaign.
  scenario.restarts_after = scenario.restarts_after || seed % 3 == 0;
  scenario.drops_after = !scenario.tight && (scenario.drops_after || seed % 4 == 1);
  if (seed % 3 != 1 && !scenario.tight) scenario.lone_transactions = 20;
  if (seed % kTurns > 2) return scenario;
  scenario.aimed = true;
  scenario.kills = 2;
  scenario.node_restarts = static_cast<uint32_t>(seed / kTurns % 2);
  scenario.coordinators = 4;
  if (seed % kTurns == 1) {
    scenario.load = SimScenario::Load::kDoor;
    scenario.long_rows = true;
    scenario.tight = scenario.prepared = false;
  } else {
    scenario.prepared = !executes_procedures(variant.protocol);
  }
  return scenario;
}

double cpu_seconds() {
  timespec now{};
  CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// SIGVTALRM ends the process when a run's time is over.
void limit_run() {
  const itimerval limit{{0, 0}, {kRunCpuSecondsMax, 0}};
  CHECK(setitimer(ITIMER_VIRTUAL, &limit, nullptr) == 0);
}

void say(const Json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

Json reached_faults() {
  Json times = Json::object();
  for (uint32_t i = 1; i < planted::kFaultsMax; i++) {
    if (planted::reached[i] != 0) times[std::to_string(i)] = planted::reached[i];
  }
  return times;
}

int reach(const std::vector<CampaignVariant>& variants, uint64_t first, uint64_t seeds,
          uint64_t step, uint64_t events_max) {
  for (uint64_t seed = first; seed <= seeds; seed += step) {
    for (const CampaignVariant& variant : variants) {
      planted::reached.fill(0);
      const double begin = cpu_seconds();
      SimScenario scenario = scenario_of(variant, seed);
      scenario.events_max = events_max;
      const SimResult result = run_scenario(0, scenario);
      say({{"variant", variant.name()},
           {"seed", seed},
           {"kind", kind_of(seed)},
           {"problem", result.problem},
           {"events", result.events},
           {"cpu_s", cpu_seconds() - begin},
           {"reached", reached_faults()}});
    }
  }
  return 0;
}

int run(uint32_t fault, double cpu_s_max) {
  planted::chosen = fault;
  std::string name;
  uint64_t seed = 0, events_max = 0;
  while (cpu_seconds() < cpu_s_max && std::cin >> name >> seed >> events_max) {
    Result<std::vector<CampaignVariant>> variants = parse_campaign_variants(name);
    if (!variants.ok()) return 2;
    SimScenario scenario = scenario_of(variants->front(), seed);
    scenario.events_max = events_max;
    say({{"begins", name + " " + std::to_string(seed)}});
    limit_run();
    const SimResult result = run_scenario(0, scenario);
    say({{"run", name + " " + std::to_string(seed)}, {"problem", result.problem}});
    if (!result.problem.empty()) return 1;
  }
  return 0;
}

int run_main(int argc, char** argv) {
  uint64_t seeds = 100, first = 1, step = 1, events_max = 15'000'000;
  uint32_t fault = 0;
  double cpu_s_max = 20;
  std::string protocols = "all";
  CLI::App app{"Runs the campaign with one planted fault, or with none."};
  CLI::App* reach_command = app.add_subcommand("reach", "without any: what each run comes to");
  reach_command->add_option("--seeds", seeds, "the last of them");
  reach_command->add_option("--first", first, "the first of them");
  reach_command->add_option("--step", step, "every how manieth");
  reach_command->add_option("--events-max", events_max, "of a run; a longer one is given up");
  reach_command->add_option("--protocols", protocols, "all, or a list");
  CLI::App* run_command = app.add_subcommand("run", "with one fault, until it is noticed");
  run_command->add_option("--fault", fault)->check(CLI::Range(0u, planted::kFaultsMax - 1));
  run_command->add_option("--cpu-s", cpu_s_max, "for all runs");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  if (!run_command->parsed()) {
    Result<std::vector<CampaignVariant>> variants = parse_campaign_variants(protocols);
    if (!variants.ok() || step == 0) return 2;
    return reach(*variants, first, seeds, step, events_max);
  }
  return run(fault, cpu_s_max);
}

}  // namespace
}  // namespace rdmacc

int main(int argc, char** argv) { return rdmacc::run_main(argc, argv); }
