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

INSTANTIATE_TEST_SUITE_P(All, BesideTraffic, testing::ValuesIn(available_protocols()),
                         [](const auto& tested) { return protocol_name(tested.param); });

}  // namespace
}  // namespace rdmacc
