// The program itself, in a process of its own: what it says and how it ends where its surroundings
// have too little for it.
#include "engine/bench/bench_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/node/node.h"
#include "engine/storage/layout/region_layout.h"
#include "rdma/open/open_fabric.h"
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

class ProgramOnARunningCluster : public Program {
 protected:
  void SetUp() override {
    Topology topology{.nodes = 1, .threads_per_node = 1, .workers_max = 8, .region_bytes = 0};
    topology.region_bytes = region_bytes_min(topology) + (64ull << 20);
    ASSERT_TRUE(create_cluster(choice_, topology).ok());
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    children_.start(2 * kSecondsMax, [&] {
      auto fabric = open_fabric_as_node(choice_, 0);
      if (!fabric.ok()) _exit(2);
      auto node = Node::open(**fabric, 0, NodeOptions());
      if (!node.ok() || write(ready[1], "x", 1) != 1) _exit(3);
      const std::atomic<bool> stop = false;
      _exit((*node)->run(stop, 0).ok() ? 0 : 4);
    });
    close(ready[1]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  void TearDown() override {
    children_.kill_all();
    destroy_cluster(choice_);
  }
  End run_with_threads(const char* threads) {
    return run({"smallbank", "--cluster=" + choice_.cluster, "--owner=7:1", "-T", "0.05", "-j",
                threads, "--records=100"},
               "/dev/null");
  }

  const FabricChoice choice_ = FabricChoice::shm("program-" + std::to_string(getpid()));
};

// Those that have got a slot do not wait for the others.
TEST_F(ProgramOnARunningCluster, EndsWhereThreadsFindNoWorkerSlot) {
  const End end = run_with_threads("16");
  EXPECT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == kExitUsage) << end.status;
  EXPECT_NE(end.said.find("every worker slot is taken"), std::string::npos) << end.said;
  const End next = run_with_threads("4");
  EXPECT_EQ(next.status, 0) << next.said;
}

}  // namespace
}  // namespace rdmacc
