#pragma once
#include "tests/sim/campaign.h"

// Runs that are made for what the campaign's draws hardly ever meet: each kind crowds one sort of
// moment. Consecutive seeds go through all kinds.

namespace rdmacc {

constexpr uint64_t kDirectedKinds = 15;  // the first eight seeds are of different ones

SimScenario directed_scenario(const CampaignVariant& variant, uint64_t seed);

}  // namespace rdmacc
