#include "engine/report/runs.h"

#include <algorithm>

namespace rdmacc {
namespace {

using Json = nlohmann::ordered_json;

Status refuse(const RunsFile& file, const char* what) {
  return Status(Code::kInvalidArgument, file.name + ": " + what);
}

// The page copes with what is missing, but without these there is nothing to show.
bool is_run(const Json& run) {
  return run.is_object() && run.contains("workload") && run["workload"].is_string() &&
         run.contains("committed_per_second") && run["committed_per_second"].is_number();
}

}  // namespace

Result<Json> gather_runs(const std::vector<RunsFile>& files) {
  Json all = Json::array();
  for (const RunsFile& file : files) {
    Json parsed = Json::parse(file.text, nullptr, false);
    if (parsed.is_discarded()) return refuse(file, "is not JSON");
    if (parsed.is_object()) parsed = Json::array({std::move(parsed)});
    if (!parsed.is_array()) return refuse(file, "is neither a run nor an array of runs");
    for (Json& run : parsed) {
      if (!is_run(run)) return refuse(file, "has something that is no run of rdmacc_bench");
      if (files.size() > 1) run["source"] = file.name;
      all.push_back(std::move(run));
    }
  }
  if (all.empty()) return Status(Code::kInvalidArgument, "there are no runs");
  return all;
}

std::string workloads_of(const Json& runs) {
  std::vector<std::string> names;
  for (const Json& run : runs) {
    const std::string name = run["workload"].get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace rdmacc
