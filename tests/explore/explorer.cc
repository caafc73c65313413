#include "tests/explore/explorer.h"

#include <cstdlib>

#include "tests/explore/state_hash.h"

namespace rdmacc {
namespace {

constexpr uint64_t kChoicesMax = 500'000;  // of one execution; more is a hang

}  // namespace

std::string ExploreReport::summary() const {
  std::string text = std::to_string(states) + " states, " + std::to_string(executions) +
                     " executions, depth " + std::to_string(depth_max) + ", " +
                     std::to_string(shared_words) + " contended words, " + std::to_string(ends) +
                     " ends, " + std::to_string(pages) + " pages" +
                     (exhausted ? ", exhausted" : ", NOT exhausted");
  for (const auto& [letters, count] : outcomes) {
    text += ' ' + letters + ':' + std::to_string(count);
  }
  return text;
}

Explorer::Explorer(const ExploreProgram& program, const ExploreSetup& setup,
                   const ExploreMutation& mutation)
    : program_(program),
      setup_(setup),
      owner_touches_(program.allocates()),
      world_(program, setup, mutation) {}

ExploreReport Explorer::explore(const ExploreLimits& limits) {
  const Status built = world_.build(*this);
  if (!built.ok()) {
    report_.problem = "the world cannot be built: " + built.to_string();
    return report_;
  }
  reduce_ = limits.reduce;
  run_serially();
  if (report_.problem.empty()) explore_all(limits);
  report_.shared_words = words_.count();
  report_.pages = WorldMemory::instance().changed_pages();
  return report_;
}

// One transaction after the other, in either order: teaches which words are contended for, and
// the transaction that is first and alone must commit.
void Explorer::run_serially() {
  for (const bool reversed : {false, true}) {
    reversed_ = reversed;
    begin_execution(Mode::kSerial);
    const bool ended = run_execution();
    const std::string outcomes = ended ? world_.outcomes() : "";
    std::string problem = judge(ended);
    const size_t first = reversed ? world_.clients() - 1 : 0;
    if (problem.empty() && outcomes[first] == 'a') {
      problem = "T" + std::to_string(first + 1) + " runs alone and is aborted";
    }
    if (!problem.empty()) return fail("in series: " + problem);
  }
}

void Explorer::explore_all(const ExploreLimits& limits) {
  uint64_t shared = words_.count();
  while (true) {
    begin_execution(Mode::kExplore);
    const bool ended = run_execution();
    if (words_.count() != shared) {
      // Events that were taken for local are not.
      shared = words_.count();
      visited_.clear();
      ends_.clear();
      path_.clear();
      report_.outcomes.clear();
      report_.results.clear();
      report_.states = report_.ends = 0;
      ++report_.restarts;
      continue;
    }
    if (!cut_) {
      const bool known = ended && !ends_.try_emplace(state_hash(), true).second;
      if (!known) {
        ++report_.ends;
        if (ended) note_end();
        const std::string problem = judge(ended);
        if (!problem.empty()) return fail(problem);
      }
    }
    if (!backtrack()) {
      report_.exhausted = true;
      return;
    }
    if (report_.states >= limits.states_max) return;
  }
}

void Explorer::note_end() {
  const std::string outcomes = world_.outcomes();
  ++report_.outcomes[outcomes];
  uint64_t hash = tables_hash_;
  for (const char letter : outcomes) hash = mix(hash * 3 + static_cast<uint64_t>(letter));
  report_.results.insert(hash);
}

bool Explorer::backtrack() {
  while (!path_.empty()) {
    Frame& frame = path_.back();
    frame.sleep.push_back(frame.options[frame.at]);
    if (++frame.at < frame.options.size()) return true;
    path_.pop_back();
  }
  return false;
}

std::string Explorer::judge(bool ended) {
  if (!ended) {
    return std::string(stuck_ ? "nothing can happen any more" : "an execution does not end") +
           " while a transaction is under way:" + world_.describe_outcomes();
  }
  if (world_.oldest_died()) return "the oldest dies:" + world_.describe_outcomes();
  const Mode before = mode_;
  mode_ = Mode::kFree;
  std::vector<GlobalAddress> headers = headers_;
  std::string problem = world_.check(headers);
  mode_ = before;
  if (!problem.empty()) problem += " (" + world_.describe_outcomes().substr(1) + ")";
  return problem;
}

// Runs the same execution again to tell it in words.
void Explorer::fail(const std::string& problem) {
  report_.problem = problem;
  for (size_t i = 0; i < taken_.size();) {
    size_t run = 1;
    while (i + run < taken_.size() && taken_[i + run] == taken_[i]) ++run;
    report_.choices += (report_.choices.empty() ? "" : ",") + std::to_string(taken_[i]);
    if (run > 1) report_.choices += '*' + std::to_string(run);
    i += run;
  }
  to_take_ = taken_;
  tracing_ = true;
  begin_execution(Mode::kReplay);
  static_cast<void>(run_execution());
  report_.trace = trace_;
}

ExploreReport Explorer::replay(const std::string& choices) {
  const Status built = world_.build(*this);
  CHECK(built.ok());
  for (const char* at = choices.c_str(); *at != '\0';) {
    char* end = nullptr;
    const auto choice = static_cast<uint32_t>(std::strtoul(at, &end, 10));
    uint64_t run = 1;
    if (*end == '*') run = std::strtoul(end + 1, &end, 10);
    if (end == at || run > kChoicesMax) break;
    to_take_.insert(to_take_.end(), run, choice);
    at = *end == ',' ? end + 1 : end;
  }
  tracing_ = true;
  begin_execution(Mode::kReplay);
  const bool ended = run_execution();
  report_.trace = trace_;
  report_.problem = judge(ended);
  return report_;
}

void Explorer::begin_execution(Mode mode) {
  world_.restore();
  mode_ = mode;
  depth_ = 0;
  cut_ = stuck_ = false;
  sleep_.clear();
  const size_t workers = world_.topology().workers_max;
  observed_.assign(workers * (world_.topology().nodes + workers), Fingerprint());
  node_work_.assign(world_.topology().node_workers(), NodeWork());
  stores_by_.assign(workers, 0);
  stores_ = 0;
  memory_hash_ = tables_hash_ = 0;
  taken_.clear();
  trace_.clear();
}

bool Explorer::run_execution() {
  ++report_.executions;
  return world_.run(kChoicesMax);
}

}  // namespace rdmacc
