#pragma once
#include <string>
#include <vector>

#include "tests/sim/sim_run.h"

// What the campaign runs: every way to execute transactions (a protocol, and NOWAIT's lock modes)
// in scenarios that a seed draws. Seeds that follow each other go through all hybrid codes.

namespace rdmacc {

struct CampaignVariant {
  Protocol protocol = Protocol::kNowait;
  LockMode lock_mode = LockMode::kExclusive;

  std::string name() const;  // "occ", "nowait_shared"
  // The hybrid codes that differ: all subsets of the stages that the protocol has.
  std::vector<uint16_t> codes() const;
};

std::vector<CampaignVariant> all_campaign_variants();
// "all", or names separated by commas. kInvalidArgument says which there are.
Result<std::vector<CampaignVariant>> parse_campaign_variants(const std::string& text);

// Workload, size, share of readers and faults follow from the seed.
SimScenario campaign_scenario(const CampaignVariant& variant, uint64_t seed);
// Bulk loads beside splits with READs that are delayed within a batch, and nothing else.
SimScenario loads_scenario(const CampaignVariant& variant, uint64_t seed);
// As campaign_scenario(), with tables that transactions make and fill before they commit.
SimScenario fresh_scenario(const CampaignVariant& variant, uint64_t seed);
// Likewise, with rows that refer to something outside of the engine.
SimScenario outside_scenario(const CampaignVariant& variant, uint64_t seed);
// Transactions that lock rows early, beside writers that do not.
SimScenario locks_scenario(const CampaignVariant& variant, uint64_t seed);
// Makes a scenario one of many transactions on two keys.
void pack(SimScenario& scenario);
// On two keys of each table, two in five of the transactions only reading, with READs and WRITEs
// that stall: what shows when one transaction overtakes another within its steps.
SimScenario packed_scenario(const CampaignVariant& variant, uint64_t seed);
// Whether verbs to a node that is down fail; draws nothing else.
bool drawn_by_wire(uint64_t seed);
// "occ seed 17: stages 34, mixed, 3 keys, 50 % readers, 2 killed, …"
std::string describe(const CampaignVariant& variant, const SimScenario& scenario);

}  // namespace rdmacc
