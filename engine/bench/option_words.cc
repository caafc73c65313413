#include "engine/bench/option_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "engine/bench/options.h"
#include "engine/bench/without_words.h"
#include "engine/protocols/presets.h"
#include "engine/protocols/registry.h"
#include "engine/workloads/registry.h"

namespace rdmacc {
namespace {

void add_cluster_options(CLI::App& app, OptionWords& words) {
  app.add_option("--fabric", words.fabric, "shm, tcp, verbs, or sim (virtual time, deterministic)")
      ->capture_default_str();
  app.add_option("--config", words.config,
                 "config file of a running cluster; without it the run starts its own nodes");
  app.add_option("--cluster", words.cluster, "shm: name of a running cluster");
  app.add_option(
      "--owner", words.owner,
      "of the run's tables, SYSTEM:DATABASE, two numbers: the tables are not another run's then, "
      "and dropped after the run");
  app.add_option("--verbs-device", words.verbs_device,
                 "verbs: RDMA devices, by commas: nodes take turns, coordinators have the last");
  app.add_option("--queue-pairs", words.queue_pairs,
                 "verbs: queue pairs of a worker to each node, used in turn")
      ->capture_default_str();
  app.add_option("--nodes", words.nodes, "nodes")->capture_default_str();
  app.add_option("--threads-per-node", words.threads_per_node, "threads that serve each node")
      ->capture_default_str();
  app.add_option("--replicas", words.replicas, "backups of each partition's log")
      ->capture_default_str();
  app.add_option("--memory", words.memory_mb, "memory of each node in MB")->capture_default_str();
  app.add_option("--durability", words.durability,
                 "where the nodes of the run keep rows: memory, or disk (in --data-dir)")
      ->capture_default_str();
  app.add_option("--data-dir", words.data_dir,
                 "disk: an empty folder, or one of a run with as many nodes; its rows stay");
  app.add_flag("--crash", words.crash,
               "disk: after the run the nodes are killed and their memory is lost; what they get "
               "back from disk is checked");
  app.add_option("--spin-us", words.spin_us, "microseconds to spin before sleeping")
      ->capture_default_str();
}

void add_load_options(CLI::App& app, OptionWords& words) {
  app.add_option("-t,--transactions", words.transactions,
                 "transactions of each coroutine, instead of --time");
  app.add_option("-R,--rate", words.rate,
                 "starts of transactions a second, of the whole run, at random moments; latency "
                 "counts from the moment (as fast as it goes)");
  app.add_option("-L,--latency-limit", words.latency_limit_ms,
                 "milliseconds: what takes longer is counted; with --rate, what is that late "
                 "already is skipped");
  app.add_option("--warm-up", words.warm_up, "seconds to run before anything is measured")
      ->capture_default_str();
  app.add_option("--sweep", words.sweeps,
                 "PARAMETER:VALUE,VALUE,...: a run for each value of an option or setting; "
                 "several of these: for each combination")
      ->expected(1)
      ->take_all();
}

void add_run_options(CLI::App& app, OptionWords& words) {
  app.add_option("--preset", words.preset,
                 "settings that emulate a system: " + preset_names() +
                     "; help describes them. What is given beside it wins");
  app.add_option("--protocol", words.protocol,
                 "one of " + available_protocol_names() + "; several by commas are a sweep")
      ->capture_default_str();
  app.add_option("--stages", words.stages,
                 "one_sided, rpc, a hybrid code 0 .. 511, a list lock=rpc,log=one_sided,..., or "
                 "auto: for each stage what takes less time")
      ->capture_default_str();
  app.add_flag("--enumerate", words.enumerate,
               "run every distinct hybrid code of the protocol and rank them");
  app.add_option("--lock-mode", words.lock_mode,
                 "how nowait, waitdie and woundwait lock what they only read: exclusive or shared")
      ->capture_default_str();
  app.add_option("--calvin", words.calvin,
                 "how calvin's transactions come to their keys: declared (where the workload can) "
                 "or reconnaissance [declared]");
  app.add_option("--location-cache", words.location_cache,
                 "on, or off: one-sided reads walk the index each time (where verbs are posted: "
                 "not on shm)")
      ->capture_default_str();
  app.add_option("--without", words.without,
                 "what posted verbs are not to save, to measure what it is worth: " +
                     saving_names() + "; several by + (not on shm)")
      ->capture_default_str();
  app.add_option("-j,--threads", words.threads, "coordinator threads")->capture_default_str();
  app.add_option("-c,--coroutines", words.coroutines, "transactions under way on each thread")
      ->capture_default_str();
  app.add_option("-T,--time", words.seconds, "seconds to run (virtual ones on sim)")
      ->capture_default_str();
  add_load_options(app, words);
  app.add_option("--seed", words.seed, "seed of all random numbers")->capture_default_str();
  app.add_option("--verb-delays", words.verb_delays,
                 "shm, tcp: pause between verbs, in every process, by a distribution that is drawn "
                 "from this seed");
  app.add_option("--format", words.format, "text, json or csv")->capture_default_str();
  app.add_option("--check", words.check,
                 "what is checked at the end: full (the workload's invariant, and that the tables "
                 "are sound) or workload")
      ->capture_default_str();
  app.add_option("--history-file", words.history_file, "write the history (docs/HISTORY.md)");
  app.add_option("--report", words.page_file, "write the results as a page for a browser, too");
  app.add_option("-P,--progress", words.progress,
                 "a line on stderr every so many seconds, 0 = none (5 when stderr is a terminal)");
}

void add_settings(CLI::App& app, const WorkloadKind& kind, OptionWords& words) {
  app.add_option("--settings", words.settings_text,
                 "settings of the workload as one text, such as records=1000,zipf=0.5");
  for (const WorkloadSetting& setting : kind.settings) {
    std::string names = std::string("--") + setting.name;
    if (setting.alias != nullptr) names += std::string(",--") + setting.alias;
    app.add_option_function<double>(
        names,
        [&words, name = setting.name](double value) { words.settings.emplace_back(name, value); },
        std::string(setting.what) + ", " + setting.range() + " [" +
            setting_text(setting.otherwise) + "]");
  }
}

// Which options were given, and what --sweep and several protocols ask for by the options' names.
Status take_axes(const CLI::App& command, OptionWords& words) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0) words.given.push_back(option->get_single_name());
  }
  for (const std::string& text : words.sweeps) {
    Result<SweepAxis> axis = parse_sweep_axis(text);
    if (!axis.ok()) return axis.status();
    const bool short_name = axis->parameter.size() == 1;
    const CLI::Option* option =
        command.get_option_no_throw((short_name ? "-" : "--") + axis->parameter);
    const std::string name = option == nullptr ? "" : option->get_single_name();
    const bool setting =
        std::any_of(words.workload->settings.begin(), words.workload->settings.end(),
                    [&name](const WorkloadSetting& each) { return name == each.name; });
    if (!setting && !may_be_swept(name)) {
      return Status(Code::kInvalidArgument, "--sweep=" + text + ": there is no number --" +
                                                axis->parameter + " that could be swept");
    }
    if (option->count() > 0) {
      return Status(Code::kInvalidArgument, "--" + name + " is swept: leave it out");
    }
    for (const SweepAxis& other : words.axes) {
      if (other.parameter != name) continue;
      return Status(Code::kInvalidArgument, "--" + name + " is swept twice");
    }
    axis->parameter = name;
    words.axes.push_back(std::move(*axis));
  }
  if (words.protocol.find(',') == words.protocol.npos) return Status();
  Result<SweepAxis> axis = parse_sweep_axis("protocol:" + words.protocol);
  if (!axis.ok()) return axis.status();
  words.axes.push_back(std::move(*axis));
  return Status();
}

// It has few options: with others a workload is meant.
bool may_mean(const CLI::App& command, int argc, const char* const* argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with('-')) continue;
    if (command.get_option_no_throw(word.substr(0, word.find('='))) == nullptr) return false;
  }
  return true;
}

// An option without a value would take the next word for it.
const char* option_without_value(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) return argv[i];
  }
  return nullptr;
}

}  // namespace

int usage_error(const std::string& sentence) {
  std::fprintf(stderr, "rdmacc_bench: %s\n", sentence.c_str());
  return kExitUsage;
}

OptionWords parse_words(int argc, const char* const* argv) {
  CLI::App app("Native benchmarks of the pg_rdmacc engine");
  app.require_subcommand(1);
  OptionWords words;
  std::vector<std::pair<CLI::App*, const WorkloadKind*>> commands;
  for (const WorkloadKind* kind : workload_kinds()) {
    CLI::App* command = app.add_subcommand(kind->name, kind->what);
    add_settings(*command, *kind, words);
    add_run_options(*command, words);
    add_cluster_options(*command, words);
    commands.emplace_back(command, kind);
  }
  CLI::App* limits =
      app.add_subcommand("limits", "what this machine can do at best, and what our verbs cost");
  limits->add_option("--format", words.format, "text or json")->capture_default_str();
  limits
      ->add_option("--records", words.handwritten_records,
                   "records of the transaction written by hand")
      ->capture_default_str();
  commands.emplace_back(limits, nullptr);
  const auto given = [&commands] {
    return std::find_if(commands.begin(), commands.end(),
                        [](const auto& command) { return command.first->parsed(); });
  };
  words.ended = true;
  if (const char* word = option_without_value(argc, argv)) {
    words.exit_code = usage_error(std::string(word) + " has no value");
    return words;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    words.exit_code = app.exit(help);
    return words;
  } catch (const CLI::ParseError& error) {
    std::string sentence = error.what();
    std::replace(sentence.begin(), sentence.end(), '\n', ' ');
    if (argc < 2 || argv[1][0] == '-' || given() == commands.end()) {
      const bool commands_too = may_mean(*limits, argc, argv);
      sentence = "the first word must be a workload" +
                 std::string(commands_too ? " or command: " : ": ") + workload_names() +
                 (commands_too ? ", limits" : "");
    }
    words.exit_code = usage_error(sentence);
    return words;
  }
  words.ended = false;
  words.workload = given()->second;
  words.stages_given = words.workload != nullptr && given()->first->count("--stages") > 0;
  for (const char* size : {"--nodes", "--threads-per-node", "--memory"}) {
    words.cluster_sized |= words.workload != nullptr && given()->first->count(size) > 0;
  }
  if (words.workload == nullptr) return words;
  if (words.preset == "help") {
    std::fputs(describe_presets().c_str(), stdout);
    words.ended = true;
    return words;
  }
  const Status swept = take_axes(*given()->first, words);
  if (!swept.ok()) {
    words.ended = true;
    words.exit_code = usage_error(swept.message());
  }
  return words;
}

}  // namespace rdmacc
