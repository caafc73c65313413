#include "tests/sim/sim_farm.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace rdmacc {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 500;

std::string to_line(const SimResult& result) {
  return Json{{"index", result.index},
              {"problem", result.problem},
              {"committed", result.committed},
              {"aborted", result.aborted},
              {"unknown", result.unknown},
              {"resolved", result.resolved},
              {"aimed", result.aimed_struck},
              {"violations", result.real_time_violations},
              {"events", result.events},
              {"structure", std::vector<uint64_t>(result.structure.cells().begin(),
                                                  result.structure.cells().end())}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) ::_exit(1);  // the reader is gone
    at += static_cast<size_t>(wrote);
  }
}

// One process: says which scenario it begins, and then what that gave.
struct Child {
  pid_t pid = -1;
  int fd = -1;
  std::string unread;
  bool running = false;  // a scenario has begun and has not ended
  size_t index = 0;
  Clock::time_point since;

  bool open() const { return fd >= 0; }

  bool start(size_t first, size_t step, size_t count,
             const std::function<SimScenario(size_t)>& scenario_of) {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    std::fflush(nullptr);
    pid = ::fork();
    if (pid < 0) {
      ::close(ends[0]);
      ::close(ends[1]);
      return false;
    }
    if (pid == 0) {
      ::close(ends[0]);
      for (size_t i = first; i < count; i += step) {
        write_all(ends[1], Json{{"begin", i}}.dump() + "\n");
        write_all(ends[1], to_line(run_scenario(i, scenario_of(i))));
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    fd = ends[0];
    since = Clock::now();
    return true;
  }

  // Ends it, if it has not ended, and says how.
  std::string end(bool kill) {
    ::close(fd);
    fd = -1;
    if (kill) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
      return "its process ended with signal " + std::to_string(WTERMSIG(status));
    return "its process ended with status " + std::to_string(WEXITSTATUS(status));
  }
};

class Farm {
 public:
  explicit Farm(const std::function<bool(const SimResult&)>& on_result) : on_result_(on_result) {}
  ~Farm() {
    for (Child& child : children_) {
      if (child.open()) child.end(/*kill=*/true);
    }
  }

  bool start(size_t processes, size_t count,
             const std::function<SimScenario(size_t)>& scenario_of) {
    children_.resize(processes);
    for (size_t i = 0; i < processes; ++i) {
      if (!children_[i].start(i, processes, count, scenario_of)) return false;
    }
    return true;
  }

  bool run(uint64_t seconds_max) {
    while (wanted_) {
      std::vector<pollfd> fds;
      std::vector<Child*> polled;
      for (Child& child : children_) {
        if (!child.open()) continue;
        fds.push_back({child.fd, POLLIN, 0});
        polled.push_back(&child);
      }
      if (fds.empty()) return true;
      if (::poll(fds.data(), fds.size(), kPollMs) < 0 && errno != EINTR) return false;
      for (size_t i = 0; i < fds.size() && wanted_; ++i) {
        if (fds[i].revents != 0) {
          read(*polled[i]);
        } else if (Clock::now() - polled[i]->since > std::chrono::seconds(seconds_max)) {
          polled[i]->end(/*kill=*/true);
          give_up(*polled[i], "no end within " + std::to_string(seconds_max) + " seconds");
        }
      }
    }
    return false;
  }

 private:
  void read(Child& child) {
    char buffer[4096];
    const ssize_t got = ::read(child.fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) {
      const std::string ending = child.end(/*kill=*/false);
      if (child.running) give_up(child, ending);
      return;
    }
    child.unread.append(buffer, static_cast<size_t>(got));
    for (size_t end; wanted_ && (end = child.unread.find('\n')) != std::string::npos;) {
      take(child, Json::parse(child.unread.substr(0, end)));
      child.unread.erase(0, end + 1);
    }
  }

  void take(Child& child, const Json& line) {
    child.since = Clock::now();
    child.running = line.contains("begin");
    if (child.running) {
      child.index = line["begin"];
      return;
    }
    SimResult result;
    result.index = line["index"];
    result.problem = line["problem"];
    result.committed = line["committed"];
    result.aborted = line["aborted"];
    result.unknown = line["unknown"];
    result.resolved = line["resolved"];
    result.aimed_struck = line["aimed"];
    result.real_time_violations = line["violations"];
    result.events = line["events"];
    result.structure.add(line["structure"].get<std::vector<uint64_t>>());
    wanted_ = on_result_(result);
  }

  // The rest of a process's scenarios is lost with it.
  void give_up(const Child& child, const std::string& problem) {
    SimResult result;
    result.index = child.index;
    result.problem = problem;
    wanted_ = on_result_(result) && false;
  }

  const std::function<bool(const SimResult&)>& on_result_;
  std::vector<Child> children_;
  bool wanted_ = true;
};

}  // namespace

SimResult run_scenario(size_t index, const SimScenario& scenario) {
  SimRun run(scenario);
  SimResult result;
  result.index = index;
  result.problem = run.run();
  for (const HistoryTransaction& transaction : run.history()) {
    result.committed += transaction.outcome == HistoryOutcome::kCommitted ? 1 : 0;
    result.aborted += transaction.outcome == HistoryOutcome::kAborted ? 1 : 0;
    result.unknown += transaction.outcome == HistoryOutcome::kUnknown ? 1 : 0;
  }
  result.resolved = run.resolved();
  result.aimed_struck = run.aimed_struck();
  result.real_time_violations = run.real_time_violations();
  result.events = run.events();
  result.structure = run.structure();
  return result;
}

bool run_scenarios(size_t count, const std::function<SimScenario(size_t)>& scenario_of,
                   const SimFarmOptions& options,
                   const std::function<bool(const SimResult&)>& on_result) {
  Farm farm(on_result);
  const size_t processes = std::min(count, std::max<size_t>(options.processes, 1));
  return farm.start(processes, count, scenario_of) && farm.run(options.run_seconds_max);
}

}  // namespace rdmacc
