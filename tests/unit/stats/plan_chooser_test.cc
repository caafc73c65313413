// The chooser of stage plans, with latencies of our own.
#include "engine/stats/plan_chooser.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

// Runs transactions whose stages cost what `cost_ns` says (times a spread of up to a third, and now
// and then a tail of milliseconds).
class PlanChooserTest : public testing::TestWithParam<uint64_t> {
 protected:
  using Cost = std::function<double(Stage, Primitive)>;

  uint64_t run(uint64_t transactions, const Cost& cost_ns) {
    uint64_t explored = 0;
    for (uint64_t n = 0; n < transactions; ++n) {
      const PlanChooser::Choice choice = chooser_.choose(protocol_, stages_);
      EXPECT_EQ(choice.plan.code() & ~stages_, 0);
      explored += choice.explores;
      for (uint32_t i = 0; i < kStageCount; ++i) {
        const auto stage = static_cast<Stage>(1u << i);
        if ((stages_ & (1u << i)) == 0 || (stage == rare_ && noise_.below(50) != 0)) continue;
        const Primitive primitive = choice.plan.of(stage);
        double ns = cost_ns(stage, primitive) * (0.83 + 0.33 * noise_.unit());
        if (noise_.below(100) == 0) ns += 4'000'000;
        chooser_.stage_done(protocol_, stage, primitive, static_cast<uint64_t>(ns));
      }
    }
    return explored;
  }
  StagePlan best() const { return chooser_.best(protocol_, stages_); }
  // One-sided for the stages in `code`, rpc for the others: each is half the price of the other.
  static Cost cheapest(uint16_t code) {
    return [code](Stage stage, Primitive primitive) {
      return StagePlan(code).of(stage) == primitive ? 4'000 : 8'000;
    };
  }

  const Protocol protocol_ = available_protocols()[0];
  const uint16_t stages_ = 1 | 2 | 4 | 8 | 16 | 32;
  const Stage rare_ = Stage::kRelease;
  PlanChooser chooser_{GetParam()};
  Random noise_{GetParam() + 1000};
};

TEST_P(PlanChooserTest, ConvergesToTheCheaperPrimitiveOfEachStage) {
  for (const uint16_t code : std::initializer_list<uint16_t>{0, 63, 21, 42}) {
    chooser_ = PlanChooser(GetParam());
    run(3000, cheapest(code));
    const int but_rare = stages_ & ~static_cast<int>(rare_);
    EXPECT_EQ(best().code() & but_rare, code & but_rare);
  }
}

TEST_P(PlanChooserTest, SettlesSoonAndExploresLittle) {
  run(200, cheapest(21));
  const uint64_t explored = run(10'000, cheapest(21));
  EXPECT_GT(explored, 0u);
  EXPECT_LT(explored, 10'000u * 5 / 100);
}

TEST_P(PlanChooserTest, LearnsAgainWhenItsOwnChoiceBecomesSlow) {
  run(3000, cheapest(63));
  const StagePlan before = best();
  run(500, [](Stage, Primitive primitive) {
    return static_cast<size_t>(primitive) == 1 ? 40'000 : 8'000;
  });
  EXPECT_EQ(before.code() & 7, 7);
  EXPECT_EQ(best().code() & 7, 0);
}

TEST_P(PlanChooserTest, FindsThatTheOtherHasBecomeCheap) {
  run(3000, cheapest(63));
  EXPECT_EQ(best().code() & 7, 7);
  run(20'000, [](Stage, Primitive primitive) {
    return static_cast<size_t>(primitive) == 1 ? 4'000 : 1'000;
  });
  EXPECT_EQ(best().code() & 7, 0);
}

TEST_P(PlanChooserTest, BoundsItsExplorationEvenIfEverythingChangesAllTheTime) {
  uint64_t explored = 0;
  for (int round = 0; round < 100; ++round) {
    explored += run(300, cheapest(round % 2 == 0 ? 63 : 0));
  }
  const uint64_t transactions = 100 * 300;
  // Six stages, each of which may learn for 64 of 1024 transactions; 1/128 otherwise.
  EXPECT_LT(explored, transactions * 6 * 64 / 1024 + transactions / 128 + 500);
}

TEST_P(PlanChooserTest, KeepsProtocolsApart) {
  run(1000, cheapest(0));
  const Protocol other = available_protocols()[1];
  EXPECT_EQ(chooser_.best(other, stages_).code(), stages_);
}

TEST_P(PlanChooserTest, ChoosesTheSameAgain) {
  PlanChooser twin(GetParam());
  for (uint64_t n = 0; n < 2000; ++n) {
    const StagePlan plan = chooser_.choose(protocol_, stages_).plan;
    ASSERT_EQ(twin.choose(protocol_, stages_).plan.code(), plan.code());
    for (uint32_t i = 0; i < kStageCount; ++i) {
      const auto stage = static_cast<Stage>(1u << i);
      const uint64_t ns = 1000 + noise_.below(1000);
      chooser_.stage_done(protocol_, stage, plan.of(stage), ns);
      twin.stage_done(protocol_, stage, plan.of(stage), ns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlanChooserTest, testing::Range(uint64_t{1}, uint64_t{21}));

}  // namespace
}  // namespace rdmacc
