// Transactions of one coordinator that meet: one waits for the other's end, no cycle of waits
// arises, and no wait is for ever.
#include "engine/coordinator_impl.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

// Two-phase locking without stages by RPC: what these lock is held until the end.
class AdmissionTest : public TwoSessions {
 protected:
  Scheduler& scheduler() { return here_.worker().scheduler(); }
  // Both in coroutines of one coordinator, `second` behind.
  void together(const std::function<void()>& first, const std::function<void(Session&)>& second) {
    bool done = false;
    as_one([&] {
      ASSERT_TRUE(scheduler().spawn([&] {
        Session session(here_);
        second(session);
        done = true;
      }));
      first();
      while (!done) scheduler().sleep_for(10);
    });
  }
  Status get(Session& session, const char* key) {
    RowView row;
    return session.get(table_, key, row);
  }
};

TEST_P(AdmissionTest, ALockOfTheSameCoordinatorIsWaitedFor) {
  uint64_t ended_us = 0;
  together(
      [&] {
        ASSERT_TRUE(one_.begin(options()).ok());
        ASSERT_TRUE(get(one_, "a").ok());
        scheduler().sleep_for(1'000);
        ASSERT_TRUE(one_.commit().ok());
        ended_us = scheduler().endpoint().now_us();
      },
      [&](Session& second) {
        scheduler().sleep_for(300);
        ASSERT_TRUE(second.begin(options()).ok());
        const Status status = get(second, "a");
        EXPECT_TRUE(status.ok()) << status.to_string();
        EXPECT_GE(scheduler().endpoint().now_us(), ended_us);
        EXPECT_NE(ended_us, 0u);
        EXPECT_TRUE(second.commit().ok());
      });
}

TEST_P(AdmissionTest, OneOfACycleLosesAtOnce) {
  Status seen[2];
  const auto cross = [&](Session& session, const char* mine, const char* others, Status& status) {
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(get(session, mine).ok());
    scheduler().sleep_for(500);
    const uint64_t since_us = scheduler().endpoint().now_us();
    status = get(session, others);
    EXPECT_LT(scheduler().endpoint().now_us(), since_us + 5'000);
    if (status.ok()) status = session.commit();
    session.abort();
  };
  together([&] { cross(one_, "a", "b", seen[0]); },
           [&](Session& second) { cross(second, "b", "a", seen[1]); });
  EXPECT_NE(seen[0].ok(), seen[1].ok()) << seen[0].to_string() << ", " << seen[1].to_string();
}

TEST_P(AdmissionTest, AHolderThatDoesNotEndIsNotWaitedForForEver) {
  together(
      [&] {
        ASSERT_TRUE(one_.begin(options()).ok());
        ASSERT_TRUE(get(one_, "a").ok());
        scheduler().sleep_for(1'000'000);
        ASSERT_TRUE(one_.commit().ok());
      },
      [&](Session& second) {
        scheduler().sleep_for(300);
        ASSERT_TRUE(second.begin(options()).ok());
        EXPECT_EQ(get(second, "a").code(), Code::kAborted);
        EXPECT_LT(scheduler().endpoint().now_us(), 500'000u);
        second.abort();
      });
}

// A transaction that a lost node kept from its end has left its locks to resolution.
TEST_P(AdmissionTest, ALockWhoseHolderHasEndedIsNotWaitedFor) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(get(one_, "a").ok());
  });
  GlobalAddress locked;
  for (NodeId node = 0; node < 2; ++node) {
    bool done = false;
    NodeThread& thread = engine_.node(node);
    ASSERT_TRUE(thread.worker().scheduler().spawn([&] {
      const auto locks = thread.storage()->locks_of(here_.worker().id());
      if (!locks.empty()) locked = locks.front();
      done = true;
    }));
    ASSERT_TRUE(engine_.run_until([&] { return done; }));
  }
  ASSERT_FALSE(locked.null());
  as_one([&] { ASSERT_TRUE(one_.commit().ok()); });
  auto* header = reinterpret_cast<Header*>(
      engine_.node(locked.node()).worker().endpoint().local_region() + locked.offset());
  ASSERT_EQ(header->lock, 0u);
  header->lock = uint64_t{1'000} << 16 | here_.worker().id();
  as_one([&] {
    const uint64_t since_us = scheduler().endpoint().now_us();
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(get(one_, "a").code(), Code::kAborted);
    EXPECT_LT(scheduler().endpoint().now_us(), since_us + 5'000);
    one_.abort();
  });
  header->lock = 0;
}

INSTANTIATE_TEST_SUITE_P(Protocols, AdmissionTest,
                         testing::Combine(testing::Values(Protocol::kNowait),
                                          testing::Values(kOneSided)),
                         name_of);

TEST(Admission, IsCrowdedWhileManyAttemptsLose) {
  SimEngine engine(1);
  Admission& admission = engine.add_coordinator().impl().state.admission;
  EXPECT_FALSE(admission.crowded());
  for (int i = 0; i < 4; ++i) admission.note_end(true);
  EXPECT_TRUE(admission.crowded());
  for (int i = 0; i < 200; ++i) admission.note_end(false);
  EXPECT_FALSE(admission.crowded());
}

}  // namespace
}  // namespace rdmacc
