// The protocols that promise serializability alone may break the order of real time, and the
// checker counts how often: histories of the engine in which they do, once, and why.
#include <gtest/gtest.h>

#include "engine/check/checker.h"
#include "engine/check/history_file.h"
#include "engine/protocols/registry.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

class RealTimeOf : public testing::Test {
 protected:
  void create(Protocol protocol, const std::vector<std::string>& keys) {
    options_.protocol = protocol;
    run(first_, [&](Session& session) {
      TableSpec spec;
      spec.relfilenode = 9;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok());
      table_ = table->id;
      ASSERT_TRUE(session.begin(options_).ok());
      for (const std::string& key : keys) ASSERT_TRUE(session.insert(table_, key, "0").ok());
      ASSERT_TRUE(session.commit().ok());
    });
  }
  void run(Coordinator& coordinator, const std::function<void(Session&)>& body) {
    engine_.run(coordinator, [&] {
      coordinator.worker().scheduler().sleep_for(10);  // ends and begins are not at one time
      Session session(coordinator);
      body(session);
      coordinator.worker().scheduler().sleep_for(10);
    });
  }
  void write(Coordinator& coordinator, const char* key, const char* and_read = nullptr) {
    run(coordinator, [&](Session& session) {
      RowView row;
      ASSERT_TRUE(session.begin(options_).ok());
      if (and_read != nullptr) {
        ASSERT_TRUE(session.get(table_, and_read, row).ok());
      }
      ASSERT_TRUE(session.put(table_, key, "1").ok());
      ASSERT_TRUE(session.commit().ok());
    });
  }
  CheckReport report() const {
    return check_serializable(history_.transactions(), {.real_time = true});
  }
  Coordinator& add() {
    Coordinator& coordinator = engine_.add_coordinator();
    coordinator.set_history(&history_);
    return coordinator;
  }

  SimEngine engine_{5};
  HistoryMemory history_;
  Coordinator& first_ = add();
  Coordinator& second_ = add();
  TxnOptions options_;
  TableId table_ = kNoTable;
};

// A worker whose clock is ahead writes; another one begins afterwards, and reads as of before.
TEST_F(RealTimeOf, MvccReadsAsOfATimeBeforeItBegan) {
  create(Protocol::kMvcc, {"x"});
  EXPECT_EQ(report().real_time_violations, 0u);
  // The slot's former owner has given out a stamp that is ahead.
  const RegionLayout layout(first_.topology());
  std::byte* region = engine_.node(0).worker().endpoint().local_region();
  auto* line = reinterpret_cast<WorkerLine*>(region + layout.worker_line(second_.worker().id()));
  line->last_ctts = (second_.worker().endpoint().now_us() + 1'000'000) << 16;
  write(second_, "x");
  EXPECT_EQ(report().real_time_violations, 0u);
  run(first_, [&](Session& session) {
    RowView row;
    ASSERT_TRUE(session.begin(options_).ok());
    ASSERT_TRUE(session.get(table_, "x", row).ok());
    EXPECT_EQ(row.row, "0");
    ASSERT_TRUE(session.commit().ok());
  });
  const CheckReport seen = report();
  EXPECT_TRUE(seen.serializable) << seen.problem;
  EXPECT_FALSE(seen.strictly_serializable);
  EXPECT_EQ(seen.real_time_violations, 1u) << seen.real_time_problem;
  EXPECT_FALSE(strictly_serializable(Protocol::kMvcc));
}

// A long transaction has a lease on x that outlasts the logical time at which z is written later
// on: it comes after the writer of z, and before the writer of x that ended before that began.
class LeasesOf : public RealTimeOf, public testing::WithParamInterface<Protocol> {};

TEST_P(LeasesOf, LetItCommitBeforeOneThatHasEnded) {
  create(GetParam(), {"q", "x", "z"});
  for (int i = 0; i < 5; ++i) write(first_, "q", "x");  // extends the lease on x
  EXPECT_EQ(report().real_time_violations, 0u);
  run(first_, [&](Session& lasting) {
    RowView row;
    ASSERT_TRUE(lasting.begin(options_).ok());
    ASSERT_TRUE(lasting.get(table_, "x", row).ok());
    bool written = false;
    ASSERT_TRUE(second_.worker().scheduler().spawn([&] {
      Session session(second_);
      for (const char* key : {"x", "z"}) {
        ASSERT_TRUE(session.begin(options_).ok());
        ASSERT_TRUE(session.put(table_, key, "1").ok());
        ASSERT_TRUE(session.commit().ok());
        second_.worker().scheduler().sleep_for(10);
      }
      written = true;
    }));
    for (int i = 0; i < 1'000 && !written; ++i) first_.worker().scheduler().sleep_for(50);
    ASSERT_TRUE(written);
    ASSERT_TRUE(lasting.get(table_, "z", row).ok());
    EXPECT_EQ(row.row, "1");
    ASSERT_TRUE(lasting.commit().ok());
  });
  const CheckReport seen = report();
  EXPECT_TRUE(seen.serializable) << seen.problem;
  EXPECT_FALSE(seen.strictly_serializable);
  EXPECT_EQ(seen.real_time_violations, 1u) << seen.real_time_problem;
  EXPECT_FALSE(strictly_serializable(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Protocols, LeasesOf,
                         testing::Values(Protocol::kSundial, Protocol::kTictoc, Protocol::kMaat),
                         [](const auto& its) { return protocol_name(its.param); });

}  // namespace
}  // namespace rdmacc
