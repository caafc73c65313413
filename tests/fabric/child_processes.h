#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

namespace rdmacc {

// Processes of a test, which do not outlive it.
class ChildProcesses {
 public:
  ChildProcesses() = default;
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;
  ~ChildProcesses() { kill_all(); }

  // Runs `body` in a new one, which ends with it, and after `seconds_max` whatever happens.
  pid_t start(unsigned seconds_max, const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGPIPE, SIG_IGN);  // as the programs do
      alarm(seconds_max);
      body();
      _exit(0);
    }
    children_.push_back(child);
    return child;
  }
  void kill_child(pid_t child) {
    ASSERT_EQ(0, kill(child, SIGKILL));
    wait_for(child);
  }
  // Until it has ended: its status, as of waitpid().
  int wait_for(pid_t child) {
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    std::erase(children_, child);
    return status;
  }
  void kill_all() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    children_.clear();
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace rdmacc
