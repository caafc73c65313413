#include "engine/bench/handwritten.h"

#include "tests/unit/bench/bench_run.h"

namespace rdmacc {
namespace {

// It reads the layout of nodes by itself, so that a change of the layout is to be noticed here. So
// many rows that the load's last groups are split after it.
TEST(HandwrittenTransaction, FindsEveryRecordThatWasLoaded) {
  constexpr uint64_t kRecords = 60'000;
  constexpr double kSeconds = 0.1;
  const Result<double> per_second =
      handwritten_transactions_per_second(kRecords, kSeconds, kNotInterrupted);
  ASSERT_TRUE(per_second.ok()) << per_second.status().to_string();
  EXPECT_GT(per_second.value(), 0);
}

}  // namespace
}  // namespace rdmacc
