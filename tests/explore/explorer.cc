#include "tests/explore/explorer.h"

#include <algorithm>
#include <cstring>

#include "tests/explore/state_hash.h"

namespace rdmacc {
namespace {

constexpr uint64_t kChoicesMax = 500'000;  // of one execution; more is a hang
constexpr uint64_t kPauseUsMax = 1'000;    // a longer timer is a time-out, which never comes

uint64_t id_of(const SimChoice& choice) {
  return (static_cast<uint64_t>(choice.kind) << 56) | (static_cast<uint64_t>(choice.worker) << 40) |
         (static_cast<uint64_t>(choice.peer) << 24) | choice.part;
}

bool contains(const std::vector<SimChoice>& choices, const SimChoice& wanted) {
  return std::any_of(choices.begin(), choices.end(),
                     [&](const SimChoice& choice) { return id_of(choice) == id_of(wanted); });
}

bool overlap(const SimChoice& a, const SimChoice& b) {
  return a.peer == b.peer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

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

// ---- The search

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

// ---- Choosing

size_t Explorer::choose(std::span<const SimChoice> possible) {
  const WorldMemory::Outside outside;
  switch (mode_) {
    case Mode::kSerial:
      return note_choice(possible, choose_serial(possible));
    case Mode::kExplore:
      return note_choice(possible, choose_next(possible));
    case Mode::kReplay:
      if (taken_.size() == to_take_.size() || to_take_[taken_.size()] >= possible.size()) {
        stuck_ = true;
        return kStop;
      }
      return note_choice(possible, to_take_[taken_.size()]);
    case Mode::kFree:
      break;
  }
  const auto first = std::find_if(possible.begin(), possible.end(), [&](const SimChoice& choice) {
    return choice.kind != SimChoice::Kind::kTimer || pauses(choice);
  });
  return first == possible.end() ? kStop : static_cast<size_t>(first - possible.begin());
}

size_t Explorer::note_choice(std::span<const SimChoice> possible, size_t chosen) {
  if (chosen == kStop) return kStop;
  if (possible[chosen].kind == SimChoice::Kind::kTimer) note_timer(possible[chosen]);
  taken_.push_back(static_cast<uint32_t>(chosen));
  if (tracing_) trace_ += "  " + describe(possible[chosen]) + '\n';
  return chosen;
}

// Everything of one transaction before anything of the next, its requests included.
size_t Explorer::choose_serial(std::span<const SimChoice> possible) const {
  const auto rank = [this](const SimChoice& choice) {
    if (choice.kind == SimChoice::Kind::kTimer && !pauses(choice)) return UINT32_MAX;
    const WorkerId client =
        choice.kind == SimChoice::Kind::kDatagram && world_.is_node(choice.worker) ? choice.peer
                                                                                   : choice.worker;
    if (world_.is_node(client)) return choice.kind == SimChoice::Kind::kTimer ? 1u : 0u;
    const uint32_t order = reversed_ ? 1000u - client : client;
    return 2 + 2 * order + (choice.kind == SimChoice::Kind::kTimer ? 1 : 0);
  };
  size_t best = 0;
  for (size_t i = 1; i < possible.size(); ++i) {
    if (rank(possible[i]) < rank(possible[best])) best = i;
  }
  return rank(possible[best]) == UINT32_MAX ? kStop : best;
}

bool Explorer::pauses(const SimChoice& timer) const {
  return timer.deadline_us <= world_.clock_us(timer.worker) + kPauseUsMax;
}

// Looking again is worth it once another worker has changed something since the look before. A
// node's requests count as other workers to one another.
uint64_t Explorer::others_stores(WorkerId worker) const {
  return world_.is_node(worker) ? stores_ : stores_ - stores_by_[worker];
}

bool Explorer::may_end_pause(const SimChoice& timer) const {
  uint64_t looked = 0;
  for (size_t source = 0; source < sources(); ++source) {
    looked = std::max(looked, observed_[timer.worker * sources() + source].stores_at_look);
  }
  return others_stores(timer.worker) > looked;
}

// What may happen next; the first pause to end if all pause.
std::vector<SimChoice> Explorer::enabled(std::span<const SimChoice> possible) const {
  std::vector<SimChoice> choices;
  const SimChoice* first_pause = nullptr;
  for (const SimChoice& choice : possible) {
    if (choice.kind != SimChoice::Kind::kTimer) {
      choices.push_back(choice);
    } else if (pauses(choice)) {
      if (may_end_pause(choice)) choices.push_back(choice);
      if (first_pause == nullptr || choice.deadline_us < first_pause->deadline_us) {
        first_pause = &choice;
      }
    }
  }
  if (choices.empty() && first_pause != nullptr) choices.push_back(*first_pause);
  return choices;
}

// Does it commute with everything that others can ever do?
bool Explorer::exclusive(const SimChoice& choice) const {
  if (!reduce_) return false;
  switch (choice.kind) {
    case SimChoice::Kind::kPiece:
      // A node posts the next chain of one request when this one is done, and that of another
      // when it arrives: their order matters.
      if (world_.is_node(choice.worker) && choice.last_of_chain) return false;
      return !words_.shared(choice);
    case SimChoice::Kind::kDatagram:
      return !world_.is_node(choice.worker);
    case SimChoice::Kind::kTimer:
      return false;
  }
  return false;
}

bool Explorer::independent(const SimChoice& a, const SimChoice& b) const {
  using Kind = SimChoice::Kind;
  if (!reduce_) return false;
  if (a.worker == b.worker) {
    if (a.kind != Kind::kPiece || b.kind != Kind::kPiece) {
      const SimChoice& piece = a.kind == Kind::kPiece ? a : b;
      return piece.kind == Kind::kPiece && !piece.last_of_chain && !owner_touches_ &&
             world_.is_node(a.worker);
    }
    return !overlap(a, b) && !(world_.is_node(a.worker) && (a.last_of_chain || b.last_of_chain));
  }
  if (a.kind == Kind::kPiece && b.kind == Kind::kPiece) {
    return !overlap(a, b) || (a.opcode == Opcode::kRead && b.opcode == Opcode::kRead);
  }
  if (!owner_touches_) return true;
  // A request may make the owner's CPU look at any word of its region, or change it.
  const SimChoice& piece = a.kind == Kind::kPiece ? a : b;
  const SimChoice& other = a.kind == Kind::kPiece ? b : a;
  return !(piece.kind == Kind::kPiece && world_.is_node(other.worker));
}

std::vector<SimChoice> Explorer::still_asleep(const std::vector<SimChoice>& sleep,
                                              const SimChoice& happens) const {
  std::vector<SimChoice> left;
  for (const SimChoice& choice : sleep) {
    if (independent(choice, happens)) left.push_back(choice);
  }
  return left;
}

size_t Explorer::choose_next(std::span<const SimChoice> possible) {
  std::vector<SimChoice> options = enabled(possible);
  if (options.empty()) {
    stuck_ = true;
    return kStop;
  }
  const SimChoice* chosen = nullptr;
  const auto local = std::find_if(options.begin(), options.end(),
                                  [this](const SimChoice& choice) { return exclusive(choice); });
  if (local != options.end()) {
    if (contains(sleep_, *local)) {
      cut_ = true;
      return kStop;
    }
    chosen = &*local;
    sleep_ = still_asleep(sleep_, *chosen);
  } else {
    if (depth_ == path_.size() && !push_frame(std::move(options))) {
      cut_ = true;
      return kStop;
    }
    const Frame& frame = path_[depth_++];
    chosen = &frame.options[frame.at];
    sleep_ = still_asleep(frame.sleep, *chosen);
  }
  for (size_t i = 0; i < possible.size(); ++i) {
    if (id_of(possible[i]) == id_of(*chosen)) return i;
  }
  CHECK(!"an execution did not repeat itself");
  return kStop;
}

// A state that has not been seen, or has been left with events asleep that are awake now; false
// if there is nothing new to do in it.
bool Explorer::push_frame(std::vector<SimChoice> options) {
  std::erase_if(options, [this](const SimChoice& choice) { return contains(sleep_, choice); });
  std::vector<uint64_t> asleep;
  for (const SimChoice& choice : sleep_) asleep.push_back(id_of(choice));
  std::sort(asleep.begin(), asleep.end());
  const auto [known, fresh] = visited_.try_emplace(state_hash(), asleep);
  if (fresh) {
    ++report_.states;
  } else {
    std::vector<uint64_t>& before = known->second;
    std::erase_if(options, [&](const SimChoice& choice) {
      return !std::binary_search(before.begin(), before.end(), id_of(choice));
    });
    std::vector<uint64_t> both;
    std::set_intersection(before.begin(), before.end(), asleep.begin(), asleep.end(),
                          std::back_inserter(both));
    before = std::move(both);
  }
  if (options.empty()) return false;
  Frame frame;
  frame.options = std::move(options);
  frame.sleep = sleep_;
  path_.push_back(std::move(frame));
  report_.depth_max = std::max<uint64_t>(report_.depth_max, path_.size());
  return true;
}

}  // namespace rdmacc
