// rdmacc_check itself: what it prints (docs/HISTORY.md shows the same) and its exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>

#include "engine/check/history_file.h"
#include "tests/unit/check/made_history.h"

namespace rdmacc {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;
};

class CheckProgram : public testing::Test {
 protected:
  CheckProgram() {
    // Several test programs may run at once.
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "rdmacc_check_" + test.name() + ".jsonl";
  }
  ~CheckProgram() override { std::remove(path_.c_str()); }

  Outcome run(const std::string& flags, const std::string& lines) {
    std::ofstream(path_) << lines;
    const std::string command = RDMACC_CHECK_PROGRAM " " + flags + " '" + path_ + "' 2>&1";
    Outcome outcome;
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    char buffer[4096];
    while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe)) {
      outcome.output.append(buffer, got);
    }
    const int status = pclose(pipe);
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    return outcome;
  }

  Outcome run(const std::string& flags, const std::vector<HistoryTransaction>& history) {
    std::string lines;
    for (const HistoryTransaction& transaction : history) lines += to_json_line(transaction) + "\n";
    return run(flags, lines);
  }

  std::string path_;
};

TEST_F(CheckProgram, TellsAnAnomaly) {
  const Outcome outcome = run("--strict", {kLoad, txn(1, {op('r', "x", 1), op('w', "y", 2)}),
                                           txn(2, {op('r', "y", 1), op('w', "x", 3)})});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output,
            "3 transactions, 3 committed, 6 operations, 6 dependencies, 0 real-time violations\n"
            "not serializable: write skew, cycle of 2: T2 (worker 1) read t1/x version 1 -> T3 "
            "(worker 2) made its next version 3 (rw); T3 (worker 2) read t1/y version 1 -> T2 "
            "(worker 1) made its next version 2 (rw)\n");
}

TEST_F(CheckProgram, TellsWhatIsSerializableButNotStrictly) {
  const std::vector<HistoryTransaction> stale{kLoad, timed(10, 20, {op('w', "x", 2)}),
                                              timed(21, 30, {op('r', "x", 1)})};
  const std::string output =
      "3 transactions, 3 committed, 4 operations, 3 dependencies, 1 real-time violations\n"
      "serializable, but not strictly: stale read, cycle of 2: T2 (worker 1) ended at 20 -> T3 "
      "(worker 1) began at 21 (real time); T3 (worker 1) read t1/x version 1 -> T2 (worker 1) made "
      "its next version 2 (rw)\n";
  const Outcome lenient = run("", stale), strict = run("--strict", stale);
  EXPECT_EQ(lenient.exit_code, 0);
  EXPECT_EQ(lenient.output, output);
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_EQ(strict.output, output);
}

TEST_F(CheckProgram, PassesWhatWasLoadedBefore) {
  const std::vector<HistoryTransaction> history{txn(1, {op('r', "x", 1), op('w', "x", 2)})};
  EXPECT_EQ(run("", history).exit_code, 1);
  const Outcome outcome = run("--preloaded --strict", history);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output,
            "1 transactions, 1 committed, 2 operations, 0 dependencies, 0 real-time violations\n"
            "strictly serializable\n");
}

TEST_F(CheckProgram, RefusesWhatItCannotRead) {
  const Outcome outcome = run("", std::string("{\"txn\":1}\n"));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.output.find("rdmacc_check: " + path_ + " line 1: "), 0u) << outcome.output;
  EXPECT_EQ(run("--no-such-flag", std::string()).exit_code, 2);
}

}  // namespace
}  // namespace rdmacc
