#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rdma/base/status.h"

namespace rdmacc {

// A file as rdmacc_bench --format=json prints it, or as scripts/compare.py writes it: a run or an
// array of runs.
struct RunsFile {
  std::string name;  // for messages, and to tell runs apart
  std::string text;
};

// All runs in the files' order, as one array. Of several files, each run says its own as `source`.
// kInvalidArgument names the file, and what is wrong with it.
Result<nlohmann::ordered_json> gather_runs(const std::vector<RunsFile>& files);

// "ycsb", "smallbank, ycsb": the workloads of runs.
std::string workloads_of(const nlohmann::ordered_json& runs);

}  // namespace rdmacc
