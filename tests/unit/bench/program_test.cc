// The program itself, in a process of its own: what it says and how it ends where its surroundings
// have too little for it.
#include "engine/bench/bench_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/fabric/child_processes.h"
#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

constexpr unsigned kSecondsMax = 60;  // of any run here: one that hangs fails

class Program : public testing::Test {
 protected:
  ~Program() override { std::remove(complaints_.c_str()); }

  struct End {
    int status = -1;  // as of waitpid()
    std::string said;
  };
  End run(const std::vector<std::string>& words, const char* output) {
    const int status = children_.wait_for(children_.start(kSecondsMax, [&] {
      CHECK(dup2(open(output, O_WRONLY), STDOUT_FILENO) >= 0);
      CHECK(dup2(open(complaints_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO) >=
            0);
      std::vector<std::string> all{"rdmacc_bench"};
      all.insert(all.end(), words.begin(), words.end());
      std::vector<char*> argv;
      for (std::string& word : all) argv.push_back(word.data());
      _exit(bench_program(static_cast<int>(argv.size()), argv.data()));
    }));
    std::stringstream said;
    said << std::ifstream(complaints_).rdbuf();
    return {status, said.str()};
  }

  ChildProcesses children_;

 private:
  const std::string complaints_ =
      testing::TempDir() + "program_test_" + std::to_string(getpid()) + ".stderr";
};

TEST_F(Program, SaysThatAReportIsNotWritten) {
  for (const char* format : {"text", "json", "csv"}) {
    std::vector<std::string> words = small_run("smallbank", 0.002);
    words.push_back(std::string("--format=") + format);
    const End end = run(words, "/dev/full");
    EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 1) << end.status;
    EXPECT_EQ(end.said,
              "rdmacc_bench: cannot write to the standard output: No space left on device\n");
    EXPECT_EQ(run(words, "/dev/null").status, 0);
  }
}

}  // namespace
}  // namespace rdmacc
