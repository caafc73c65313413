// A transaction under CALVIN writes two tables, one of which is dropped while its request is in the
// order: when it commits, its rows in the other table are there.
#include <gtest/gtest.h>

#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

constexpr int kRounds = 120, kRows = 6;
// A transaction takes some hundreds of microseconds of the simulated time.
constexpr uint64_t kDropDelayStepUs = 8;

class DropBesideCommitTest : public testing::Test {
 protected:
  DropBesideCommitTest()
      : engine_(11),
        writer_(engine_.add_coordinator()),
        dropper_(engine_.add_coordinator()),
        session_(writer_),
        other_(dropper_) {
    options_.protocol = Protocol::kCalvin;
  }
  TableId create(uint32_t name) {
    TableSpec spec;
    spec.relfilenode = name;
    spec.record_size = 64;
    auto created = session_.create_table(spec);
    CHECK(created.ok());
    return created->id;
  }
  static std::string key_of(int round, int row) {
    return std::to_string(round) + "." + std::to_string(row);
  }
  Status write(TableId kept, TableId dropped, int round) {
    RDMACC_RETURN_IF_ERROR(session_.begin(options_));
    for (int row = 0; row < kRows; row++) {
      RDMACC_RETURN_IF_ERROR(session_.insert(kept, key_of(round, row), "row"));
      RDMACC_RETURN_IF_ERROR(session_.insert(dropped, key_of(round, row), "row"));
    }
    return session_.commit();
  }
  int count_rows(TableId table, int round) {
    int rows = 0;
    CHECK(session_.begin(options_).ok());
    for (int row = 0; row < kRows; row++) {
      RowView seen;
      CHECK(session_.get(table, key_of(round, row), seen).ok());
      rows += seen.found ? 1 : 0;
    }
    session_.abort();
    return rows;
  }

  SimEngine engine_;
  Coordinator& writer_;
  Coordinator& dropper_;
  Session session_, other_;
  TxnOptions options_;
};

TEST_F(DropBesideCommitTest, RowsOfTheOtherTableAreThere) {
  TableId kept = kNoTable;
  engine_.run(writer_, [&] { kept = create(1); });
  int committed = 0, refused = 0;
  for (int round = 0; round < kRounds; round++) {
    bool dropped = false;
    TableId table = kNoTable;
    engine_.run(writer_, [&] { table = create(2); });
    ASSERT_TRUE(dropper_.worker().scheduler().spawn([&] {
      dropper_.worker().scheduler().sleep_for(static_cast<uint64_t>(round) * kDropDelayStepUs);
      EXPECT_TRUE(other_.drop_table(table).ok());
      dropped = true;
    }));
    engine_.run(writer_, [&] {
      const Status status = write(kept, table, round);
      if (!status.ok()) session_.abort();
      const int rows = count_rows(kept, round);
      EXPECT_EQ(rows, status.ok() ? kRows : 0) << "round " << round << ": " << status.to_string();
      (status.ok() ? committed : refused)++;
    });
    ASSERT_TRUE(engine_.run_until([&] { return dropped; }));
  }
  EXPECT_GT(committed, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace rdmacc
