// Two phases through sessions: what is prepared, how it ends, and what a dead coordinator leaves.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "tests/unit/engine/sim_engine.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr Gtid kGtid{77, 5};

class Prepare : public testing::TestWithParam<Protocol> {
 protected:
  Prepare() : engine_(7, 1), keeper_(engine_.add_coordinator()) {
    options_.protocol = GetParam();
    in(keeper_, [this](Session& session) {
      auto table = session.create_table(TableSpec{});
      ASSERT_TRUE(table.ok());
      table_ = table->id;
      ASSERT_TRUE(session.begin(options_).ok());
      ASSERT_TRUE(session.insert(table_, "old", "1").ok());
      ASSERT_TRUE(session.commit().ok());
    });
  }

  void in(Coordinator& coordinator, const std::function<void(Session&)>& body) {
    engine_.run(coordinator, [&] {
      Session session(coordinator);
      body(session);
    });
  }
  // A transaction that updates a row and inserts another, and is prepared.
  void prepare(Session& session, Gtid gtid = kGtid) {
    ASSERT_TRUE(session.begin(options_).ok());
    ASSERT_TRUE(session.put(table_, "old", "2").ok());
    ASSERT_TRUE(session.insert(table_, "new", "2").ok());
    const Status status = session.prepare(gtid);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(session.prepared());
  }
  // Both rows in one transaction, retried: "old,new", with - for one that is not there.
  std::string rows(Session& session) {
    std::string seen;
    const Status status = [&] {
      Status last;
      for (int attempt = 0; attempt < 50; ++attempt) {
        seen.clear();
        RowView row;
        last = session.begin(options_);
        if (last.ok()) last = session.get(table_, "old", row);
        if (last.ok()) seen += row.found ? std::string(row.row) : "-";
        if (last.ok()) last = session.get(table_, "new", row);
        if (last.ok()) seen += "," + (row.found ? std::string(row.row) : "-");
        if (last.ok()) last = session.commit();
        if (session.active()) session.abort();
        if (last.ok()) break;
        session.scheduler().sleep_for(10'000);  // node 0 looks every 100 ms
      }
      return last;
    }();
    return status.ok() ? seen : status.to_string();
  }
  // Prepares in a coordinator that dies then; until node 0 has found it in doubt.
  void leave_in_doubt(Gtid gtid) {
    Coordinator& doomed = engine_.add_coordinator();
    Session* session = new Session(doomed);  // dies with its worker, before anything ends it
    engine_.run(doomed, [&] { prepare(*session, gtid); });
    engine_.fabric().kill(doomed.worker().id());
    in(keeper_, [&](Session& keeper) {
      for (int look = 0; look < 200; ++look) {
        auto list = keeper.in_doubt();
        ASSERT_TRUE(list.ok()) << list.status().to_string();
        if (list->transactions.size() == 1) return;
        keeper.scheduler().sleep_for(10'000);
      }
      FAIL() << "never in doubt";
    });
    delete session;
  }
  void expect_nothing_locked(Session& session) {
    for (NodeId node = 0; node < 2; ++node) {
      auto locked = session.locked_headers(node, 0);
      ASSERT_TRUE(locked.ok());
      EXPECT_TRUE(locked->headers.empty()) << "node " << node;
    }
  }
  void decide_and_expect(bool commit, const std::string& expected) {
    in(keeper_, [&](Session& session) {
      EXPECT_EQ(session.decide(Gtid{77, 6}, commit).code(), Code::kNotFound);
      ASSERT_TRUE(session.decide(kGtid, commit).ok());
      EXPECT_EQ(session.decide(kGtid, !commit).code(), Code::kNotFound);
      EXPECT_EQ(rows(session), expected);
      session.scheduler().sleep_for(400'000);
      auto list = session.in_doubt();
      ASSERT_TRUE(list.ok());
      EXPECT_TRUE(list->transactions.empty());
      EXPECT_EQ(list->unresolved, 0u);
      expect_nothing_locked(session);
    });
    EXPECT_TRUE(engine_.fabric().departed().empty());
  }

  SimEngine engine_;
  Coordinator& keeper_;
  TxnOptions options_;
  TableId table_ = kNoTable;
};

TEST_P(Prepare, CommitsWhenItIsToldTo) {
  in(keeper_, [&](Session& session) {
    prepare(session);
    ASSERT_TRUE(session.commit_prepared().ok());
    EXPECT_FALSE(session.active());
    EXPECT_EQ(rows(session), "2,2");
    expect_nothing_locked(session);
  });
}

TEST_P(Prepare, AbortsWhenItIsToldTo) {
  in(keeper_, [&](Session& session) {
    prepare(session);
    session.abort();
    EXPECT_EQ(rows(session), "1,-");
    expect_nothing_locked(session);
  });
}

TEST_P(Prepare, WhatWroteNothingIsCommittedByIt) {
  in(keeper_, [&](Session& session) {
    ASSERT_TRUE(session.begin(options_).ok());
    ASSERT_TRUE(session.prepare(kGtid).ok());
    EXPECT_FALSE(session.active());
    ASSERT_TRUE(session.begin(options_).ok());
    RowView row;
    ASSERT_TRUE(session.get(table_, "old", row).ok());
    ASSERT_TRUE(session.prepare(kGtid).ok());
    EXPECT_FALSE(session.active());
    expect_nothing_locked(session);
  });
}

TEST_P(Prepare, ADeadCoordinatorsStaysInDoubtUntilItIsCommitted) {
  leave_in_doubt(kGtid);
  in(keeper_, [&](Session& session) {
    session.scheduler().sleep_for(500'000);  // many looks of node 0
    auto list = session.in_doubt();
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->transactions.size(), 1u);
    EXPECT_EQ(list->transactions[0].gtid, kGtid);
    size_t locks = 0;
    for (NodeId node = 0; node < 2; ++node) {
      auto locked = session.locked_headers(node, 0);
      ASSERT_TRUE(locked.ok());
      locks += locked->headers.size();
    }
    EXPECT_GE(locks, 3u);  // both rows, and the gap of the new one
    ASSERT_TRUE(session.begin(options_).ok());
    Status status = session.put(table_, "old", "3");
    if (status.ok()) status = session.commit();
    EXPECT_EQ(status.code(), Code::kAborted);
    if (session.active()) session.abort();
  });
  decide_and_expect(true, "2,2");
}

TEST_P(Prepare, ADeadCoordinatorsStaysInDoubtUntilItIsAborted) {
  leave_in_doubt(kGtid);
  decide_and_expect(false, "1,-");
}

INSTANTIATE_TEST_SUITE_P(All, Prepare, testing::ValuesIn(protocols_without_order()),
                         [](const auto& tested) { return protocol_name(tested.param); });

TEST(PrepareInOrder, IsRefusedAndLeavesTheTransaction) {
  SimEngine engine(3);
  Coordinator& coordinator = engine.add_coordinator();
  engine.run(coordinator, [&] {
    Session session(coordinator);
    auto table = session.create_table(TableSpec{});
    ASSERT_TRUE(table.ok());
    TxnOptions options;
    options.protocol = Protocol::kCalvin;
    ASSERT_TRUE(session.begin(options).ok());
    ASSERT_TRUE(session.insert(table->id, "k", "v").ok());
    EXPECT_EQ(session.prepare(kGtid).code(), Code::kInvalidArgument);
    ASSERT_TRUE(session.active());
    EXPECT_TRUE(session.commit().ok());
  });
}

TEST(ListTables, NamesThemAllInOrder) {
  SimEngine engine(5);
  Coordinator& coordinator = engine.add_coordinator();
  engine.run(coordinator, [&] {
    Session session(coordinator);
    std::vector<TableId> made;
    for (uint32_t number = 1; number <= 5; ++number) {
      TableSpec spec;
      spec.system_id = 9;
      spec.database = 4;
      spec.relfilenode = number;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok());
      made.push_back(table->id);
    }
    ASSERT_TRUE(session.drop_table(made[2]).ok());
    auto listed = session.list_tables();
    ASSERT_TRUE(listed.ok());
    ASSERT_EQ(listed->size(), 4u);
    EXPECT_EQ((*listed)[2].id, made[3]);
    EXPECT_EQ((*listed)[2].system_id, 9u);
    EXPECT_EQ((*listed)[2].database, 4u);
    EXPECT_EQ((*listed)[2].relfilenode, 4u);
  });
}

}  // namespace
}  // namespace rdmacc
