#include "tests/sim/campaign.h"

#include <algorithm>

#include "engine/protocols/registry.h"
#include "rdma/base/random.h"

namespace rdmacc {
namespace {

constexpr std::array kLoads = {SimScenario::Load::kMixed, SimScenario::Load::kBank,
                               SimScenario::Load::kPredicate};
constexpr std::array kLoadNames = {"mixed", "bank",  "predicate", "indexed", "loads",
                                   "door",  "heads", "fresh",     "outside"};
constexpr uint32_t kIndexedPercent = 20, kFreshPercent = 8, kOutsidePercent = 8;
constexpr uint32_t kDoorPercent = 40, kTightPercent = 40, kPreparedPercent = 25;
constexpr uint32_t kDoorTransactions = 20;
constexpr uint32_t kLocksPercentMin = 20, kLocksPercents = 60;
constexpr uint64_t kLoadsEventsMax = 400'000'000;
// Where waits for rows that are locked early end by their bound: up to 150 million have been seen.
constexpr uint64_t kLocksEventsMax = 500'000'000;
constexpr uint32_t kRestartsAfterPercent = 5, kDropsAfterPercent = 4, kLonePercent = 5;
constexpr uint32_t kLoneTransactions = 20;
constexpr uint32_t kLatePercent = 3, kLazyPercent = 4;
constexpr uint32_t kAimedPercent = 50, kHeadsPercent = 6, kTallPercent = 5;
constexpr uint32_t kLongRowsPercent = 6, kStrikesPercent = 10, kLongKeysPercent = 10;
constexpr uint32_t kDeepPercent = 15, kDeepRows = 8;
constexpr uint32_t kHeadsOfLoadsPercent = 50, kHeadsTransactions = 15;
constexpr uint32_t kDelaysPercent = 50, kReadDelaysPercent = 30;
// As the mapped port does it (Endpoint::Port::kOneByOne).
constexpr uint32_t kOneByOnePercent = 40;
// Of the runs: what is asked of a node that is down fails, as over a wire; else its memory stays.
constexpr uint32_t kByWirePercent = 40;
// Only writers that read now and then, the usual share, read-mostly, all but a few, readers alone.
constexpr std::array<uint32_t, 5> kReaderPercents = {0, 20, 50, 90, 100};

void draw_load(SimScenario& scenario, Random& random) {
  scenario.load = kLoads[random.below(kLoads.size())];
  scenario.read_only_percent = kReaderPercents[random.below(kReaderPercents.size())];
  scenario.keys = static_cast<uint32_t>(random.percent(50) ? 2 + random.below(3) : 0);
  scenario.history = static_cast<uint32_t>(1 + random.below(4));
  scenario.coordinators = static_cast<uint32_t>(2 + random.below(3));
  scenario.coroutines = static_cast<uint32_t>(1 + random.below(3));
  scenario.cpu_moves = random.percent(70);
}

// A third of the runs without any fault: there nothing excuses an odd outcome.
void draw_faults(SimScenario& scenario, Random& random) {
  if (random.below(3) == 0) return;
  if (random.percent(50)) {
    scenario.loss_percent = static_cast<uint32_t>(random.below(20));
    scenario.duplicate_percent = static_cast<uint32_t>(random.below(20));
  }
  if (random.percent(50)) scenario.kills = static_cast<uint32_t>(1 + random.below(2));
  if (random.percent(40)) scenario.node_restarts = static_cast<uint32_t>(1 + random.below(2));
}

void draw_door(SimScenario& scenario, Random& random, bool in_order) {
  if (!random.percent(kDoorPercent)) return;
  scenario.load = SimScenario::Load::kDoor;
  scenario.coordinators = std::max(scenario.coordinators, 3u);
  scenario.transactions = kDoorTransactions;
  scenario.tight = random.percent(kTightPercent) && !in_order;
  scenario.prepared = !in_order && random.percent(kPreparedPercent);
}

// A share of READs alone: a change between two of them is what look-ups of many keys must survive.
void draw_delays(SimScenario& scenario, Random& random) {
  if (!random.percent(kDelaysPercent)) return;
  scenario.delays = random.percent(kReadDelaysPercent) ? SimDelays::between_reads(random)
                                                       : SimDelays::draw(random);
}

// What a run is followed by, and what else makes it unlike others. Drawn apart, so that all else of
// a seed stays as it was.
void draw_after(SimScenario& scenario, uint64_t seed) {
  Random random(seed ^ 0x5EC0'11D0);
  scenario.restarts_after = random.percent(kRestartsAfterPercent);
  // Neither the rows to load nor those of a session alone may be refused.
  scenario.drops_after = random.percent(kDropsAfterPercent) && !scenario.tight;
  if (random.percent(kLonePercent) && !scenario.tight) {
    scenario.lone_transactions = kLoneTransactions;
  }
  const bool deaths = scenario.kills + scenario.node_restarts > 0;
  scenario.aimed = deaths && random.percent(kAimedPercent);
  scenario.late = random.percent(kLatePercent);
  const bool in_order = executes_procedures(scenario.protocol);
  // Not in a node's memory that may run out: a load has no other way to go on than to begin again.
  if (scenario.load == SimScenario::Load::kMixed && Random(seed ^ 0xF4E5).percent(kFreshPercent)) {
    scenario.load = SimScenario::Load::kFresh;
  }
  if (scenario.load == SimScenario::Load::kMixed &&
      Random(seed ^ 0x0751DE).percent(kOutsidePercent)) {
    scenario.load = SimScenario::Load::kOutside;
  }
  if (scenario.load != SimScenario::Load::kDoor) {
    if (random.percent(kHeadsPercent)) scenario.load = SimScenario::Load::kHeads;
    scenario.prepared = scenario.kills > 0 && !in_order && random.percent(kPreparedPercent);
    scenario.tall = random.percent(kTallPercent);
    return;
  }
  scenario.lazy = random.percent(kLazyPercent);
  scenario.long_rows = random.percent(kLongRowsPercent) && !scenario.tight;
  if (random.percent(kStrikesPercent))
    scenario.strikes = 1 + static_cast<uint32_t>(random.below(3));
  scenario.long_keys = random.percent(kLongKeysPercent) && !scenario.tight;
}

}  // namespace

std::string CampaignVariant::name() const {
  const std::string name = protocol_name(protocol);
  return lock_mode == LockMode::kExclusive ? name : name + "_" + lock_mode_name(lock_mode);
}

std::vector<uint16_t> CampaignVariant::codes() const {
  const uint16_t stages = stages_of(protocol);
  std::vector<uint16_t> codes;
  for (uint16_t code = 0; code <= stages; ++code) {
    if ((code & stages) == code) codes.push_back(code);
  }
  return codes;
}

std::vector<CampaignVariant> all_campaign_variants() {
  std::vector<CampaignVariant> variants;
  for (const Protocol protocol : available_protocols()) {
    variants.push_back({protocol, LockMode::kExclusive});
    const bool has_modes = rules_of(protocol, LockMode::kShared) != rules_of(protocol);
    if (has_modes) variants.push_back({protocol, LockMode::kShared});
  }
  return variants;
}

Result<std::vector<CampaignVariant>> parse_campaign_variants(const std::string& text) {
  const std::vector<CampaignVariant> all = all_campaign_variants();
  if (text == "all") return all;
  std::vector<CampaignVariant> chosen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const CampaignVariant& each) { return each.name() == name; });
    if (found == all.end()) {
      std::string names;
      for (const CampaignVariant& each : all) names += ", " + each.name();
      return Status(Code::kInvalidArgument, "no protocol \"" + name + "\"; there are all" + names);
    }
    chosen.push_back(*found);
    begin = end + 1;
  }
  return chosen;
}

bool drawn_by_wire(uint64_t seed) { return Random(seed ^ 0x317E).percent(kByWirePercent); }

SimScenario campaign_scenario(const CampaignVariant& variant, uint64_t seed) {
  const std::vector<uint16_t> codes = variant.codes();
  SimScenario scenario;
  scenario.seed = seed;
  scenario.protocol = variant.protocol;
  scenario.lock_mode = variant.lock_mode;
  scenario.code = codes[seed % codes.size()];
  Random random(seed * 0x9E3779B97F4A7C15ull + 3);
  draw_load(scenario, random);
  draw_faults(scenario, random);
  scenario.declared = executes_procedures(variant.protocol) && random.percent(60);
  // Drawn last, and so are other seeds what they were.
  if (random.percent(kIndexedPercent)) scenario.load = SimScenario::Load::kIndexed;
  draw_door(scenario, random, executes_procedures(variant.protocol));
  draw_delays(scenario, random);
  scenario.one_by_one = random.percent(kOneByOnePercent);
  draw_after(scenario, seed);
  scenario.unreachable = drawn_by_wire(seed);
  return scenario;
}

SimScenario loads_scenario(const CampaignVariant& variant, uint64_t seed) {
  const std::vector<uint16_t> codes = variant.codes();
  SimScenario scenario;
  scenario.seed = seed;
  scenario.protocol = variant.protocol;
  scenario.lock_mode = variant.lock_mode;
  scenario.code = codes[seed % codes.size()];
  Random random(seed ^ 0x10AD);
  scenario.load = SimScenario::Load::kLoads;
  scenario.coordinators = 3 + static_cast<uint32_t>(random.below(2));
  scenario.coroutines = 1 + static_cast<uint32_t>(random.below(4));
  scenario.transactions = 5;
  scenario.events_max = kLoadsEventsMax;
  scenario.delays = SimDelays::between_reads(random);
  scenario.one_by_one = random.percent(kOneByOnePercent);
  Random after(seed ^ 0xDEE9);
  if (after.percent(kDeepPercent)) {
    scenario.deep_rows = kDeepRows;
    scenario.coordinators = 3;
    scenario.coroutines = 1;
  }
  if (after.percent(kHeadsOfLoadsPercent)) {
    scenario.load = SimScenario::Load::kHeads;
    scenario.transactions = kHeadsTransactions;
    if (after.percent(50)) scenario.delays = SimDelays::draw(random);
  }
  if (after.percent(kStrikesPercent)) scenario.strikes = 1 + static_cast<uint32_t>(after.below(3));
  draw_after(scenario, seed);
  scenario.unreachable = drawn_by_wire(seed);
  return scenario;
}

SimScenario fresh_scenario(const CampaignVariant& variant, uint64_t seed) {
  SimScenario scenario = campaign_scenario(variant, seed);
  scenario.load = SimScenario::Load::kFresh;
  scenario.tight = scenario.drops_after = false;
  return scenario;
}

SimScenario outside_scenario(const CampaignVariant& variant, uint64_t seed) {
  SimScenario scenario = campaign_scenario(variant, seed);
  scenario.load = SimScenario::Load::kOutside;
  return scenario;
}

SimScenario locks_scenario(const CampaignVariant& variant, uint64_t seed) {
  SimScenario scenario = campaign_scenario(variant, seed);
  Random random(seed ^ 0x10C5);
  scenario.load = SimScenario::Load::kDoor;
  scenario.coordinators = std::max(scenario.coordinators, 3u);
  scenario.transactions = kDoorTransactions;
  scenario.prepared = !executes_procedures(variant.protocol) && random.percent(kPreparedPercent);
  scenario.lock_percent = kLocksPercentMin + static_cast<uint32_t>(random.below(kLocksPercents));
  scenario.tall = false;
  scenario.events_max = kLocksEventsMax;
  return scenario;
}

void pack(SimScenario& scenario) {
  scenario.keys = 2;
  scenario.coordinators = 5;
  scenario.transactions = 30;
  scenario.read_only_percent = 40;
  scenario.stall_percent = 12;
}

SimScenario packed_scenario(const CampaignVariant& variant, uint64_t seed) {
  const std::vector<uint16_t> codes = variant.codes();
  Random random(seed ^ 0x9ACC);
  SimScenario scenario;
  scenario.seed = seed;
  scenario.protocol = variant.protocol;
  scenario.lock_mode = variant.lock_mode;
  // Every other run one-sided: another's steps come between these alone.
  scenario.code = random.percent(50) ? stages_of(variant.protocol) : codes[seed % codes.size()];
  pack(scenario);
  scenario.history = 1 + static_cast<uint32_t>(random.below(3));
  scenario.one_by_one = random.percent(kOneByOnePercent);
  return scenario;
}

std::string describe(const CampaignVariant& variant, const SimScenario& scenario) {
  std::string text = variant.name() + " seed " + std::to_string(scenario.seed) + ": stages " +
                     std::to_string(scenario.code) + ", " +
                     kLoadNames[static_cast<size_t>(scenario.load)];
  const auto say = [&text](uint64_t count, const char* what) {
    if (count != 0) text += ", " + std::to_string(count) + " " + what;
  };
  if (scenario.load == SimScenario::Load::kMixed) say(scenario.keys, "keys");
  say(scenario.read_only_percent.value_or(0), "% readers");
  say(scenario.loss_percent, "% lost");
  say(scenario.duplicate_percent, "% doubled");
  say(scenario.kills, "killed");
  say(scenario.node_restarts, "restarted");
  if (scenario.declared) text += ", declared";
  if (!scenario.cpu_moves) text += ", whole lines";
  if (scenario.one_by_one) text += ", one by one";
  if (scenario.tight) text += ", little memory";
  if (scenario.prepared) text += ", prepared";
  if (scenario.aimed) text += ", aimed";
  say(scenario.cut_short, "installs cut short");
  say(scenario.in_doubt, "lost in doubt");
  say(scenario.cancel_percent, "% cancelled");
  if (scenario.unreachable) text += ", by wire";
  if (scenario.die_at_end) text += ", dead at the end";
  if (scenario.late) text += ", late";
  if (scenario.lazy) text += ", lazy";
  if (scenario.rest_us > 0) text += ", rests";
  if (scenario.tall && scenario.load == SimScenario::Load::kIndexed) text += ", tall";
  say(scenario.strikes, "struck");
  say(scenario.deep_rows, "deep rows");
  if (scenario.long_rows) text += ", long rows";
  if (scenario.long_keys) text += ", long keys";
  if (scenario.visited) text += ", visited";
  say(scenario.scan_percent, "% scans");
  say(scenario.lock_percent, "% early locks");
  if (scenario.drops_after) text += ", dropped after";
  if (scenario.restarts_after) text += ", restarted after";
  say(scenario.lone_transactions, "alone");
  if (scenario.delays.any()) text += ", " + scenario.delays.describe();
  return text;
}

}  // namespace rdmacc
