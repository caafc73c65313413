#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/sim/campaign.h"
#include "tests/sim/sim_farm.h"

// Stage x fault x protocol: runs that aim one fault at one step of one stage (aimed_faults.h), how
// often each has struck, and which never can, and why.

namespace rdmacc {

struct FaultCell {
  size_t variant = 0;
  FaultAim aim;
};

// nullptr, or why the fault cannot come there.
const char* why_impossible(const CampaignVariant& variant, const FaultAim& aim);
SimScenario fault_scenario(const CampaignVariant& variant, const FaultAim& aim, uint64_t seed);
// "log node dies/log/within"
std::string to_string(const FaultAim& aim);

class FaultTable {
 public:
  struct Options {
    uint64_t seeds = 1, first = 1;  // of each cell
    size_t jobs = 1;
    std::string aim;  // one alone, or all
  };

  FaultTable(const Options& options, std::vector<CampaignVariant> variants);

  // False when a run has failed, or a fault that can come has not struck in any.
  bool run();
  void print() const;
  void write_json(const std::string& name) const;
  size_t cells() const { return cells_.size(); }

 private:
  bool take(const SimResult& result);
  void tell_failure(const FaultCell& cell, uint64_t seed, const std::string& problem);
  uint64_t seed_of(size_t index) const { return options_.first + index / cells_.size(); }
  uint64_t struck_in(size_t variant, FaultRole role, FaultStage stage, bool& possible) const;

  const Options options_;
  const std::vector<CampaignVariant> variants_;
  std::vector<FaultCell> cells_;
  std::vector<uint64_t> struck_;  // by cell
  std::vector<std::string> failures_;
  uint64_t runs_ = 0, committed_ = 0, unknown_ = 0;
};

}  // namespace rdmacc
