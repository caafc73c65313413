#include "engine/check/history_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace rdmacc {
namespace {

using testing::HasSubstr;

HistoryTransaction example() {
  HistoryTransaction t;
  t.ctts = 0xFFFF'FFFF'FFFF'0003ull;
  t.worker = 3;
  t.protocol = Protocol::kNowait;
  t.stages = 29;
  t.outcome = HistoryOutcome::kAborted;
  t.reason = AbortReason::kLockHeld;
  t.start_us = 10;
  t.end_us = 25;
  t.events = {{HistoryOp::kRead, 1, std::string("a\0\"\\\xff z", 7), 77, {}},
              {HistoryOp::kMiss, 2, "", 0, {}},
              {HistoryOp::kScan, 2, "", 0, {{0, 5, 3, 12}, {1, 0, 1, 13}}},
              {HistoryOp::kScan, 3, "", 0, {}},
              {HistoryOp::kWrite, 1, "k", 78, {}},
              {HistoryOp::kInsert, 1, "l", 78, {}},
              {HistoryOp::kDelete, 1, "m", 78, {}}};
  return t;
}

class HistoryFileTest : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  Status read_text(const std::string& text) {
    std::ofstream(path_) << text;
    Result<std::vector<HistoryTransaction>> history = read_history(path_);
    return history.ok() ? Status() : history.status();
  }
  const std::string path_ = testing::TempDir() + "history." + std::to_string(::getpid());
};

TEST_F(HistoryFileTest, GivesBackWhatWasWritten) {
  Result<std::unique_ptr<HistoryFile>> file = HistoryFile::create(path_);
  ASSERT_TRUE(file.ok());
  HistoryTransaction committed = example();
  committed.outcome = HistoryOutcome::kCommitted;
  committed.reason = AbortReason::kNone;
  committed.events.clear();
  (*file)->add(example());
  (*file)->add(committed);
  ASSERT_TRUE((*file)->close().ok());

  Result<std::vector<HistoryTransaction>> history = read_history(path_);
  ASSERT_TRUE(history.ok()) << history.status().to_string();
  ASSERT_EQ(history->size(), 2u);
  const HistoryTransaction& read = (*history)[0];
  const HistoryTransaction written = example();
  EXPECT_EQ(read.ctts, written.ctts);
  EXPECT_EQ(read.worker, written.worker);
  EXPECT_EQ(read.protocol, written.protocol);
  EXPECT_EQ(read.stages, written.stages);
  EXPECT_EQ(read.outcome, written.outcome);
  EXPECT_EQ(read.reason, written.reason);
  EXPECT_EQ(read.start_us, written.start_us);
  EXPECT_EQ(read.end_us, written.end_us);
  ASSERT_EQ(read.events.size(), written.events.size());
  for (size_t i = 0; i < read.events.size(); ++i) {
    EXPECT_EQ(read.events[i].op, written.events[i].op);
    EXPECT_EQ(read.events[i].table, written.events[i].table);
    EXPECT_EQ(read.events[i].key, written.events[i].key);
    EXPECT_EQ(read.events[i].version, written.events[i].version);
    ASSERT_EQ(read.events[i].groups.size(), written.events[i].groups.size());
  }
  EXPECT_EQ(read.events[2].groups[0].bits, 5u);
  EXPECT_EQ(read.events[2].groups[1].stamp, 13u);
  EXPECT_EQ(to_json_line(read), to_json_line(written));
  EXPECT_EQ((*history)[1].outcome, HistoryOutcome::kCommitted);
}

TEST_F(HistoryFileTest, WritesTheDocumentedForm) {
  HistoryTransaction t = example();
  t.ctts = 5;
  t.events.resize(3);
  EXPECT_EQ(to_json_line(t),
            "{\"txn\":5,\"worker\":3,\"protocol\":\"nowait\",\"stages\":29,\"outcome\":\"aborted\","
            "\"reason\":\"lock_held\",\"start\":10,\"end\":25,\"ops\":[[\"r\",1,"
            "\"a\\\\x00\\\"\\\\x5c\\\\xff z\",77],[\"m\",2,\"\",0],"
            "[\"s\",2,[[0,5,3,12],[1,0,1,13]]]]}");
}

TEST_F(HistoryFileTest, NamesTheLineThatIsWrong) {
  const std::string good = to_json_line(example());
  EXPECT_TRUE(read_text("").ok());
  EXPECT_TRUE(read_text(good + "\n\n" + good).ok());
  const auto error = [&](const std::string& line) {
    const Status status = read_text(good + "\n" + line + "\n");
    EXPECT_EQ(status.code(), Code::kCorrupt) << line;
    EXPECT_THAT(status.message(), HasSubstr(" line 2: ")) << line;
    return status.message();
  };
  const auto with_ops = [](const std::string& ops) {
    return "{\"txn\":5,\"worker\":3,\"protocol\":\"occ\",\"stages\":29,\"outcome\":\"committed\","
           "\"start\":10,\"end\":25,\"ops\":" +
           ops + "}";
  };
  EXPECT_THAT(error("garbage"), HasSubstr("not JSON"));
  EXPECT_THAT(error(good.substr(0, good.size() / 2)), HasSubstr("not JSON"));
  EXPECT_THAT(error("\xff\xfe"), HasSubstr("not JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("\"txn\" is missing"));
  EXPECT_THAT(error("{\"txn\":-1}"), HasSubstr("\"txn\" is not a number"));
  EXPECT_THAT(error("{\"txn\":1,\"worker\":70000}"), HasSubstr("0 .. 65535"));
  EXPECT_THAT(error(with_ops("7")), HasSubstr("not a list"));
  EXPECT_THAT(error(with_ops("[[\"q\",1,\"k\",2]]")), HasSubstr("none of r, m, s, w, i, d"));
  EXPECT_THAT(error(with_ops("[[\"r\",1,\"k\"]]")), HasSubstr("has 3 fields"));
  EXPECT_THAT(error(with_ops("[[\"r\",1,\"k\\\\y\",2]]")), HasSubstr("\\xHEX"));
  EXPECT_THAT(error(with_ops("[[\"r\",1,\"k\\\\x1\",2]]")), HasSubstr("\\xHEX"));
  EXPECT_THAT(error(with_ops("[[\"s\",1,[[0,1]]]]")), HasSubstr("a scanned group"));
  EXPECT_THAT(error(with_ops("[[\"s\",1,[[0,1,64,0]]]]")), HasSubstr("depth"));
}

TEST_F(HistoryFileTest, SaysThatThereIsNoFile) {
  EXPECT_THAT(read_history("/nonexistent/file").status().message(), HasSubstr("cannot open"));
  EXPECT_FALSE(HistoryFile::create("/nonexistent/file").ok());
}

}  // namespace
}  // namespace rdmacc
