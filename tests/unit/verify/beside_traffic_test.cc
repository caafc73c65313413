// Verification beside transactions that insert, delete and change rows while groups are split: it
// finds nothing, since nothing is wrong, and it ends.
#include "engine/protocols/registry.h"
#include "tests/unit/verify/verified_engine.h"

namespace rdmacc {
namespace {

class BesideTraffic : public testing::TestWithParam<Protocol> {
 protected:
  static constexpr uint32_t kWriters = 3, kTransactionsMax = 5000, kKeys = 2500;
  static constexpr int kVerifications = 8;

  BesideTraffic() : verified_(11, GetParam(), 50) {}

  // One transaction: rows that are there go or change, others come.
  Status change(Session& session, Random& random) {
    RDMACC_RETURN_IF_ERROR(session.begin(verified_.options().txn));
    Status status;
    for (int i = 0; i < 8 && status.ok(); ++i) {
      const auto number = static_cast<uint32_t>(random.below(kKeys));
      const std::string key = VerifiedEngine::key(number), row = VerifiedEngine::row(number);
      status = session.insert(verified_.table(), key, row);
      if (status.code() != Code::kDuplicateKey) continue;
      status = random.percent(20) ? session.remove(verified_.table(), key)
                                  : session.put(verified_.table(), key, row);
    }
    if (status.ok()) return session.commit();
    session.abort();
    return status;
  }
  void write(Coordinator& coordinator, uint64_t seed) {
    CHECK(coordinator.worker().scheduler().spawn([this, &coordinator, seed] {
      Random random(seed);
      Session session(coordinator);
      for (uint32_t i = 0; i < kTransactionsMax && !stopped_; ++i) {
        const Status status = change(session, random);
        EXPECT_TRUE(status.ok() || status.code() == Code::kAborted) << status.to_string();
        committed_ += status.ok() ? 1 : 0;
        session.scheduler().sleep_for(random.below(200));
      }
      ++ended_;
    }));
  }

  VerifiedEngine verified_;
  uint32_t ended_ = 0, committed_ = 0;
  bool stopped_ = false;
};

TEST_P(BesideTraffic, FindsNothing) {
  for (uint32_t w = 0; w < kWriters; ++w) write(verified_.engine().add_coordinator(), w + 1);
  for (int i = 0; i < kVerifications; ++i) {
    const uint32_t before = committed_;
    for (const Finding& finding : verified_.verify()) ADD_FAILURE() << finding.to_string();
    EXPECT_GT(committed_, before) << "nothing went on meanwhile";
  }
  stopped_ = true;
  ASSERT_TRUE(verified_.engine().run_until([this] { return ended_ == kWriters; }));
  EXPECT_GT(verified_.root(0).depth(), kInitialDepth) << "no group was split";
  for (const Finding& finding : verified_.verify()) ADD_FAILURE() << finding.to_string();
}

// Scans are compared with the number of rows while no transaction is under way, but groups may be
// split even then.
TEST(Audit, CountsARowOnceWhileGroupsAreSplit) {
  VerifiedEngine verified(13, Protocol::kOcc, /*rows=*/0);
  Coordinator& loader = verified.engine().add_coordinator();
  bool ended = false;
  CHECK(loader.worker().scheduler().spawn([&] {
    Session session(loader);
    ASSERT_TRUE(session.begin(verified.options().txn).ok());
    for (uint32_t i = 0; i < VerifiedEngine::kRows; ++i) {
      ASSERT_TRUE(
          session.insert(verified.table(), VerifiedEngine::key(i), VerifiedEngine::row(i)).ok());
    }
    EXPECT_TRUE(session.commit().ok());
    ended = true;
  }));
  verified.engine().run(verified.coordinator(), [&] {
    Session session(verified.coordinator());
    uint64_t rows = 0;
    for (bool last = false; !last;) {
      last = ended;
      rows = 0;
      for (NodeId node = 0; node < verified.nodes(); ++node) {
        Result<AuditReport> report = session.audit(node, verified.table());
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        rows += report->rows;
      }
      EXPECT_LE(rows, VerifiedEngine::kRows);
    }
    EXPECT_EQ(rows, VerifiedEngine::kRows);
  });
  EXPECT_GT(verified.root(0).depth(), kInitialDepth) << "no group was split";
}

TEST(Audit, AnswersWithWhatAMessageHasRoomFor) {
  AuditReport report;
  for (uint32_t i = 0; i < 2 * kFaultsPerAudit; ++i) {
    Fault fault;
    fault.offset = i;
    fault.key = std::string(kKeyBytesMax, 'k');
    report.add(std::move(fault));
  }
  std::vector<std::byte> bytes;
  report.write(bytes);
  EXPECT_LT(bytes.size(), kMaxMessageBytes);
  AuditReport read;
  ASSERT_TRUE(read.parse(bytes));
  EXPECT_EQ(read.faults_seen, 2 * kFaultsPerAudit);
  EXPECT_GT(read.faults.size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(All, BesideTraffic, testing::ValuesIn(available_protocols()),
                         [](const auto& tested) { return protocol_name(tested.param); });

}  // namespace
}  // namespace rdmacc
