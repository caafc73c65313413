#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/bench/sweep.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

// The command line as it was typed; numbers are signed so that "-1" gets our sentence.
struct OptionWords {
  // Nothing is to be run: help was printed, or the words were wrong, and the exit code is this.
  bool ended = false;
  int exit_code = 0;

  const WorkloadKind* workload = nullptr;                // nullptr: the command `limits`
  std::vector<std::pair<std::string, double>> settings;  // of the workload, those that were given
  std::string protocol = "occ", stages = "one_sided", lock_mode = "exclusive";
  std::string calvin;  // empty: not given
  std::string preset;  // likewise
  std::string location_cache = "on";
  std::string without = "none";
  std::string fabric = "shm", format = "text", check = "full";
  std::string config, cluster, owner, verbs_device;
  std::string settings_text;  // "records=1000,zipf=0.5"
  std::string durability = "memory", data_dir;
  bool crash = false;
  bool stages_given = false, enumerate = false;
  bool cluster_sized = false;  // --nodes, --threads-per-node or --memory was given
  int64_t nodes = 2, threads_per_node = 1, threads = 1, coroutines = 8, replicas = 0;
  int64_t handwritten_records = 1'000'000;  // `limits`
  int64_t memory_mb = 1024, spin_us = 50, queue_pairs = 1;
  double seconds = 10, progress = 0, warm_up = 0;
  std::optional<int64_t> transactions;
  std::optional<double> rate, latency_limit_ms;
  std::string seed = "1";
  std::string verb_delays;  // empty: not given
  std::string history_file, page_file;
  std::vector<std::string> sweeps;  // as they were typed
  std::vector<SweepAxis> axes;      // the same, with the options' own names
  std::vector<std::string> given;   // options by their long names: "time"

  bool was_given(const char* option) const {
    return std::find(given.begin(), given.end(), option) != given.end();
  }
};

OptionWords parse_words(int argc, const char* const* argv);
// Says on stderr what is wrong with the words; gives the exit code.
int usage_error(const std::string& sentence);

}  // namespace rdmacc
