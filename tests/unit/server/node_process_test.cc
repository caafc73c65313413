// A node's process begins when it has been written down, and not at all when its parent ends
// before.
#include "pg_rdmacc/server/node_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace {

constexpr int kLooksMax = 10'000;

template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int look = 0; look < kLooksMax; ++look) {
    if (condition()) return true;
    usleep(1'000);
  }
  return false;
}

struct Started {
  ProcessIdentity process{};
  int ready_fd = -1, go_fd = -1;
};

Started start(const char* program, const char* argument) {
  Started started;
  std::string name = program, only = argument;
  char* arguments[] = {name.data(), only.data(), nullptr};
  EXPECT_TRUE(
      process_start(program, arguments, &started.process, &started.ready_fd, &started.go_fd));
  EXPECT_GT(started.process.pid, 0);
  return started;
}

std::string program_of(pid_t pid) {
  char path[4096];
  const ssize_t length =
      readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

int reaped(pid_t pid) {
  int wait_status = -1;
  EXPECT_TRUE(comes_true([&] { return process_reap(pid, &wait_status); }));
  return wait_status;
}

TEST(NodeProcess, BeginsWhenItIsLetGo) {
  const Started started = start("/bin/echo", "ready");
  EXPECT_EQ(program_of(getpid()), program_of(started.process.pid));
  EXPECT_FALSE(process_said_ready(started.ready_fd));
  process_let_go(started.go_fd);
  EXPECT_TRUE(comes_true([&] { return process_said_ready(started.ready_fd); }));
  const int wait_status = reaped(started.process.pid);
  EXPECT_TRUE(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
  close(started.ready_fd);
}

TEST(NodeProcess, EndsWhenItIsNeverLetGo) {
  const Started first = start("/bin/sleep", "600");
  const Started second = start("/bin/sleep", "600");
  close(first.go_fd);
  close(second.go_fd);
  for (const Started& started : {first, second}) {
    EXPECT_TRUE(WIFEXITED(reaped(started.process.pid)));
    EXPECT_FALSE(process_alive(started.process));
    close(started.ready_fd);
  }
}

TEST(NodeProcess, EndsWithAParentThatHasNotLetItGo) {
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const Started started[] = {start("/bin/sleep", "600"), start("/bin/sleep", "600")};
    for (const Started& each : started) {
      if (write(ends[1], &each.process, sizeof(each.process)) < 0) _exit(1);
    }
    _exit(0);
  }
  EXPECT_EQ(parent, waitpid(parent, nullptr, 0));
  for (int i = 0; i < 2; ++i) {
    ProcessIdentity process{};
    ASSERT_EQ(static_cast<ssize_t>(sizeof(process)), read(ends[0], &process, sizeof(process)));
    EXPECT_TRUE(comes_true([&] { return !process_alive(process); }));
    process_signal(process, SIGKILL);
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(AttendedProcess, SaysWhatItHasToSayByTwoPipes) {
  std::string shell = "/bin/sh", command = "-c", script = "echo out; echo err >&2; exit 3";
  char* arguments[] = {shell.data(), command.data(), script.data(), nullptr};
  ProcessIdentity process{};
  int output_fd = -1, error_fd = -1;
  ASSERT_TRUE(process_start_attended(shell.c_str(), arguments, &process, &output_fd, &error_fd));
  const int wait_status = reaped(process.pid);
  EXPECT_TRUE(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 3);
  char text[16] = {};
  EXPECT_EQ(4, read(output_fd, text, sizeof(text)));
  EXPECT_STREQ("out\n", text);
  EXPECT_EQ(4, read(error_fd, text, sizeof(text)));
  EXPECT_STREQ("err\n", text);
  EXPECT_EQ(0, read(output_fd, text, sizeof(text)));
  close(output_fd);
  close(error_fd);
}

TEST(AttendedProcess, EndsWithItsParent) {
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    std::string sleep = "/bin/sleep", seconds = "600";
    char* arguments[] = {sleep.data(), seconds.data(), nullptr};
    ProcessIdentity process{};
    int output_fd = -1, error_fd = -1;
    if (!process_start_attended(sleep.c_str(), arguments, &process, &output_fd, &error_fd))
      _exit(1);
    if (write(ends[1], &process, sizeof(process)) < 0) _exit(1);
    pause();
    _exit(0);
  }
  ProcessIdentity process{};
  ASSERT_EQ(static_cast<ssize_t>(sizeof(process)), read(ends[0], &process, sizeof(process)));
  EXPECT_TRUE(process_alive(process));
  ASSERT_EQ(0, kill(parent, SIGKILL));
  EXPECT_EQ(parent, waitpid(parent, nullptr, 0));
  EXPECT_TRUE(comes_true([&] { return !process_alive(process); }));
  process_signal(process, SIGKILL);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
