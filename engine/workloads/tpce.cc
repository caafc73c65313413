#include "engine/workloads/tpce.h"

#include <algorithm>

namespace rdmacc {
namespace {

using tpce::kHoldingsMax;

constexpr uint64_t kSecuritiesOfAThousand = 685;

constexpr std::array kSettings = {
    WorkloadSetting{"records", "customers", "customers", 1, 4'294'967'296, 5'000},
    WorkloadSetting{"securities", nullptr, "securities, 0: 685 for a thousand customers", 0,
                    16'777'215, 0},
    WorkloadSetting{"trades", nullptr, "trades of an account", 0, tpce::kTradesMax, 10},
    WorkloadSetting{"tax-ids", nullptr, "percent of customer-positions by tax id", 0, 100, 50},
    WorkloadSetting{"trade-histories", nullptr,
                    "percent of customer-positions with the history of an account's last trades", 0,
                    100, 50},
    WorkloadSetting{"feeds", nullptr, "percent of market-feeds, the others are customer-positions",
                    0, 100, 10},
    WorkloadSetting{"feed-entries", nullptr, "securities that a market-feed is about", 1,
                    kTpceFeedEntriesMax, kTpceFeedEntriesMax},
    WorkloadSetting{"zipf", nullptr, "skew factor of a Zipf distribution of these; 0: none", 0,
                    0.999, 0, true},
    kHistorySetting,
};

uint64_t securities_of(const TpceOptions& options) {
  if (options.securities > 0) return options.securities;
  return std::max<uint64_t>(kHoldingsMax + kTpceFeedEntriesMax,
                            options.customers * kSecuritiesOfAThousand / 1'000);
}

Result<std::unique_ptr<Workload>> make_tpce(const WorkloadSettings& settings,
                                            const WorkloadCluster&) {
  TpceOptions options;
  options.customers = settings.number("records");
  options.securities = settings.number("securities");
  options.trades = settings.number32("trades");
  options.tax_id_percent = settings.number32("tax-ids");
  options.history_percent = settings.number32("trade-histories");
  options.feed_percent = settings.number32("feeds");
  options.feed_entries = settings.number32("feed-entries");
  options.zipf_theta = settings.fraction("zipf");
  options.history = settings.number32("history");
  const std::string problem = options.problem();
  if (!problem.empty()) return Status(Code::kInvalidArgument, problem);
  return Result<std::unique_ptr<Workload>>(std::make_unique<Tpce>(options));
}

}  // namespace

const WorkloadKind kTpceKind = {"tpce", "TPC-E's customer-position, beside market-feeds", kSettings,
                                make_tpce};

std::string TpceOptions::problem() const {
  const uint64_t least = std::max<uint64_t>(kHoldingsMax, feed_entries);
  if (securities_of(*this) >= least) return "";
  return "--securities must be 0 or at least " + std::to_string(least) +
         ", which an account may hold or a market-feed is about";
}

Tpce::Tpce(const TpceOptions& options)
    : options_(options),
      securities_(securities_of(options)),
      chooser_(AccessPattern{securities_, 0, 0, options.zipf_theta}) {
  CHECK(options.problem().empty() && options.customers >= 1);
  CHECK(options.feed_entries >= 1 && options.feed_entries <= kTpceFeedEntriesMax);
}

TxnInputs Tpce::draw(Random& random) const {
  TxnInputs inputs;
  if (!random.percent(options_.feed_percent)) {
    inputs.kind = kCustomerPosition;
    inputs.add(random.between(1, options_.customers));
    inputs.add(random.percent(options_.tax_id_percent) ? 1 : 0);
    const bool history = random.percent(options_.history_percent);
    inputs.add(history ? random.between(1, tpce::kAccountsMax) : 0);
    return inputs;
  }
  inputs.kind = kMarketFeed;
  inputs.add(1 + random.below(1ull << 40));
  std::array<uint64_t, kTpceFeedEntriesMax> drawn{};
  for (uint32_t i = 0; i < options_.feed_entries; ++i) {
    uint64_t security = chooser_.choose(random) + 1;
    while (std::find(drawn.begin(), drawn.begin() + i, security) != drawn.begin() + i) {
      security = security % securities_ + 1;
    }
    drawn[i] = security;
    const uint64_t quantity = random.between(1, tpce::kQuantityMax);
    inputs.add(security | quantity << 24 | static_cast<uint64_t>(tpce::draw_price(random)) << 40);
  }
  return inputs;
}

}  // namespace rdmacc
