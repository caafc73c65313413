#include "engine/bench/load_options.h"

#include "engine/bench/option_words.h"

namespace rdmacc {
namespace {

constexpr int64_t kTransactionsMax = 1'000'000'000'000;
constexpr double kRateMax = 1e9, kLatencyLimitMsMax = 1e6, kWarmUpSecondsMax = 1e6;

Status refuse(const char* sentence) { return Status(Code::kInvalidArgument, sentence); }

}  // namespace

Status take_load(const OptionWords& words, LoadOptions& load) {
  if (words.transactions && (*words.transactions < 1 || *words.transactions > kTransactionsMax)) {
    return refuse("--transactions must be 1 .. 1000000000000");
  }
  if (words.transactions && words.was_given("time")) {
    return refuse("--transactions and --time exclude each other");
  }
  if (words.rate && !(*words.rate > 0 && *words.rate <= kRateMax)) {
    return refuse("--rate must be more than 0 and at most 1000000000 transactions a second");
  }
  if (words.latency_limit_ms &&
      !(*words.latency_limit_ms > 0 && *words.latency_limit_ms <= kLatencyLimitMsMax)) {
    return refuse("--latency-limit must be more than 0 and at most 1000000 milliseconds");
  }
  if (!(words.warm_up >= 0 && words.warm_up <= kWarmUpSecondsMax)) {
    return refuse("--warm-up must be 0 .. 1000000 seconds");
  }
  load.transactions = static_cast<uint64_t>(words.transactions.value_or(0));
  load.rate = words.rate.value_or(0);
  load.latency_limit_ms = words.latency_limit_ms.value_or(0);
  load.warm_up_seconds = words.warm_up;
  return Status();
}

}  // namespace rdmacc
