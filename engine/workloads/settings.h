#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/workloads/workload.h"

namespace rdmacc {

// One number that a workload can be told, as the command line and reports name it.
struct WorkloadSetting {
  const char* name;   // "records"
  const char* alias;  // another name of it, or nullptr
  const char* what;   // a few words for --help
  double least, most, otherwise;
  bool fraction = false;  // else a whole number

  std::string range() const;  // "2 .. 100"
};

std::string setting_text(double value);  // "0.99", "100000"

// Values for all settings of one workload.
class WorkloadSettings {
 public:
  WorkloadSettings() = default;
  // All at their defaults. `known` lives as long as the program.
  explicit WorkloadSettings(std::span<const WorkloadSetting> known);

  // kInvalidArgument: not known, not a whole number, or out of range; says what is possible.
  Status set(std::string_view name_or_alias, double value);
  // "records=1000,hot-access=5", as to_string() gives it; what is not named keeps its value.
  Status parse(std::string_view text);
  std::string to_string() const;

  // CHECK that the setting is known.
  double fraction(std::string_view name) const;
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  uint64_t number(std::string_view name) const { return static_cast<uint64_t>(fraction(name)); }
  uint32_t number32(std::string_view name) const { return static_cast<uint32_t>(number(name)); }

  std::span<const WorkloadSetting> known() const { return known_; }

 private:
  std::span<const WorkloadSetting> known_;
  std::map<std::string, double, std::less<>> values_;
};

// A workload as the registry knows it.
struct WorkloadKind {
  const char* name;
  const char* what;  // one line for --help
  std::span<const WorkloadSetting> settings;
  // kInvalidArgument: the settings do not go together, or not with the cluster.
  Result<std::unique_ptr<Workload>> (*make)(const WorkloadSettings& settings,
                                            const WorkloadCluster& cluster);
};

// Old versions that are kept of each row: what the multi-version protocols need.
constexpr uint32_t kDefaultHistory = 3;
constexpr WorkloadSetting kHistorySetting = {"history", nullptr,     "old versions kept of a row",
                                             0,         kHistoryMax, kDefaultHistory};

}  // namespace rdmacc
