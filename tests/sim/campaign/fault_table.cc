#include "tests/sim/campaign/fault_table.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/protocols/registry.h"
#include "rdma/base/random.h"

namespace rdmacc {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kFaultsOfRun = 2;
constexpr uint32_t kHotKeys = 6;
constexpr size_t kFailuresMax = 20;

uint16_t bits_of(FaultStage stage) {
  const auto bit = [](Stage each) { return static_cast<uint16_t>(each); };
  switch (stage) {
    case FaultStage::kRead:
      return bit(Stage::kRead);
    case FaultStage::kLock:
      return bit(Stage::kLock);
    case FaultStage::kValidate:
      return bit(Stage::kValidate) | bit(Stage::kRenew);
    case FaultStage::kLog:
      return bit(Stage::kLog);
    case FaultStage::kInstall:
      return bit(Stage::kCommit);
    case FaultStage::kRelease:
      return bit(Stage::kRelease);
    case FaultStage::kOrder:
      return bit(Stage::kBroadcast);
    case FaultStage::kAcknowledged:
      break;
  }
  return UINT16_MAX;
}

bool kills_coordinator(FaultRole role) {
  return role == FaultRole::kCoordinator || role == FaultRole::kCoordinatorAndParticipant ||
         role == FaultRole::kCoordinatorAndRecoverer || role == FaultRole::kDamagedCopy;
}

bool kills_node(FaultRole role) {
  return role == FaultRole::kParticipant || role == FaultRole::kLogNode ||
         role == FaultRole::kCoordinatorAndParticipant || role == FaultRole::kTwoNodes ||
         role == FaultRole::kCoordinatorAndRecoverer;
}

// What is released by itself: rows that were only read, under two-phase locking; under the others,
// the locks of transactions that lose when they have taken some.
void crowd(SimScenario& scenario) {
  scenario.load = SimScenario::Load::kMixed;
  scenario.keys = 3;
  scenario.read_only_percent = 30;
  scenario.coordinators = 5;
  scenario.transactions = 40;
}

}  // namespace

const char* why_impossible(const CampaignVariant& variant, const FaultAim& aim) {
  const bool in_order = executes_procedures(variant.protocol);
  const bool reads_in_order = in_order && aim.stage == FaultStage::kRead;
  if (!reads_in_order && (stages_of(variant.protocol) & bits_of(aim.stage)) == 0) {
    return "the protocol has no such stage";
  }
  if (aim.stage == FaultStage::kAcknowledged && aim.moment != FaultMoment::kAfter) {
    return "it is one moment";
  }
  const bool of_record = aim.role == FaultRole::kLogNode || aim.role == FaultRole::kDamagedCopy;
  if (!of_record) return nullptr;
  if (in_order) return "nodes log the order, and no coordinator its transactions";
  const bool early = aim.stage == FaultStage::kRead || aim.stage == FaultStage::kLock ||
                     aim.stage == FaultStage::kValidate ||
                     (aim.stage == FaultStage::kLog && aim.moment == FaultMoment::kBefore);
  if (early) return "there is no record yet";
  // What else it holds by then are rows that it has only read, or an abort's.
  return aim.stage == FaultStage::kRelease ? "the record is not needed any more" : nullptr;
}

std::string to_string(const FaultAim& aim) {
  return std::string(name_of(aim.role)) + "/" + name_of(aim.stage) + "/" + name_of(aim.moment);
}

SimScenario fault_scenario(const CampaignVariant& variant, const FaultAim& aim, uint64_t seed) {
  Random random(seed ^ 0xFA'017);
  SimScenario scenario;
  scenario.seed = seed;
  scenario.protocol = variant.protocol;
  scenario.lock_mode = variant.lock_mode;
  const std::vector<uint16_t> codes = variant.codes();
  // All stages one-sided, all by RPC, and mixtures.
  scenario.code = seed % 3 == 0   ? codes.back()
                  : seed % 3 == 1 ? codes.front()
                                  : codes[random.below(codes.size())];
  scenario.load = random.percent(60) ? SimScenario::Load::kMixed : SimScenario::Load::kBank;
  scenario.read_only_percent = 10;
  scenario.keys = kHotKeys;
  scenario.coordinators = 4;
  scenario.coroutines = 1;
  scenario.transactions = 12;
  scenario.aim = aim;
  scenario.kills = kills_coordinator(aim.role) ? aim.count : 0;
  scenario.node_restarts = kills_node(aim.role) ? aim.count : 0;
  const bool in_order = executes_procedures(variant.protocol);
  scenario.declared = in_order && random.percent(50);
  if (aim.stage == FaultStage::kRelease) crowd(scenario);
  scenario.prepared = !in_order && random.percent(25);
  scenario.unreachable = drawn_by_wire(seed);
  return scenario;
}

FaultTable::FaultTable(const Options& options, std::vector<CampaignVariant> variants)
    : options_(options), variants_(std::move(variants)) {
  for (size_t role = 0; role < kFaultRoles; ++role) {
    for (size_t stage = 0; stage < kFaultStages; ++stage) {
      for (size_t moment = 0; moment < kFaultMoments; ++moment) {
        const FaultAim aim{static_cast<FaultRole>(role), static_cast<FaultStage>(stage),
                           static_cast<FaultMoment>(moment), kFaultsOfRun};
        if (!options_.aim.empty() && to_string(aim) != options_.aim) continue;
        for (size_t v = 0; v < variants_.size(); ++v) {
          if (why_impossible(variants_[v], aim) == nullptr) cells_.push_back({v, aim});
        }
      }
    }
  }
  struck_.resize(cells_.size());
}

bool FaultTable::run() {
  const SimFarmOptions farm{.processes = options_.jobs};
  const bool ended = run_scenarios(
      cells_.size() * options_.seeds,
      [this](size_t index) {
        const FaultCell& cell = cells_[index % cells_.size()];
        return fault_scenario(variants_[cell.variant], cell.aim, seed_of(index));
      },
      farm, [this](const SimResult& result) { return take(result); });
  if (!ended && failures_.empty()) failures_.push_back("no process could be run");
  for (size_t i = 0; ended && options_.aim.empty() && i < cells_.size(); ++i) {
    if (struck_[i] > 0) continue;
    failures_.push_back("never struck: " + variants_[cells_[i].variant].name() + ", " +
                        to_string(cells_[i].aim));
  }
  return failures_.empty();
}

bool FaultTable::take(const SimResult& result) {
  const size_t cell = result.index % cells_.size();
  struck_[cell] += result.aimed_struck;
  ++runs_;
  committed_ += result.committed;
  unknown_ += result.unknown;
  if (!result.problem.empty()) tell_failure(cells_[cell], seed_of(result.index), result.problem);
  return failures_.size() < kFailuresMax;
}

void FaultTable::tell_failure(const FaultCell& cell, uint64_t seed, const std::string& problem) {
  const std::string name = variants_[cell.variant].name();
  failures_.push_back(name + ", " + to_string(cell.aim) + ", seed " + std::to_string(seed) + ": " +
                      problem + "\nrepeat: build/release/tests/rdmacc_campaign --faults" +
                      " --protocols=" + name + " --aim=\"" + to_string(cell.aim) +
                      "\" --seeds=1 --first=" + std::to_string(seed));
}

uint64_t FaultTable::struck_in(size_t variant, FaultRole role, FaultStage stage,
                               bool& possible) const {
  uint64_t struck = 0;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const FaultCell& cell = cells_[i];
    if (cell.variant != variant || cell.aim.role != role || cell.aim.stage != stage) continue;
    possible = true;
    struck += struck_[i];
  }
  return struck;
}

void FaultTable::print() const {
  std::printf("%-33s %-12s", "fault", "stage");
  for (const CampaignVariant& variant : variants_) std::printf(" %13s", variant.name().c_str());
  std::printf("\n");
  for (size_t r = 0; r < kFaultRoles; ++r) {
    for (size_t s = 0; s < kFaultStages; ++s) {
      const auto role = static_cast<FaultRole>(r);
      const auto stage = static_cast<FaultStage>(s);
      bool any = false;
      std::string line;
      for (size_t v = 0; v < variants_.size(); ++v) {
        bool possible = false;
        const uint64_t struck = struck_in(v, role, stage, possible);
        any = any || possible;
        const std::string text = possible ? std::to_string(struck) : "-";
        line += std::string(14 - std::min<size_t>(13, text.size()), ' ') + text;
      }
      if (any) std::printf("%-33s %-12s%s\n", name_of(role), name_of(stage), line.c_str());
    }
  }
  std::printf("\nHow often each struck, before, within and after the stage together. -: %s\n",
              "the protocol has no such stage, or there is no record yet.");
  for (const std::string& failure : failures_) std::printf("FAILED: %s\n", failure.c_str());
  std::printf("%zu cells, %lu runs, %lu transactions committed, %lu of unknown outcome\n",
              cells_.size(), runs_, committed_, unknown_);
  const size_t failed = std::min(failures_.size(), cells_.size());
  std::printf("%zu passed, %zu failed\n", cells_.size() - failed, failures_.size());
}

void FaultTable::write_json(const std::string& name) const {
  Json cells = Json::array();
  for (size_t i = 0; i < cells_.size(); ++i) {
    const FaultCell& cell = cells_[i];
    cells.push_back({{"protocol", variants_[cell.variant].name()},
                     {"fault", name_of(cell.aim.role)},
                     {"stage", name_of(cell.aim.stage)},
                     {"moment", name_of(cell.aim.moment)},
                     {"struck", struck_[i]}});
  }
  std::ofstream(name) << Json{{"runs", runs_}, {"cells", cells}, {"failures", failures_}}.dump(1)
                      << "\n";
}

}  // namespace rdmacc
