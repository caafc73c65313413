#include "engine/workloads/tpce.h"

#include <algorithm>

#include "engine/workloads/bulk_load.h"

namespace rdmacc {
namespace {

using tpce::kAccountsMax;
using tpce::kHoldingsMax;
using tpce::kPriceMax;
using tpce::kPriceMin;
using tpce::kTiers;

constexpr uint32_t kFirstTableNumber = 71;
constexpr uint64_t kCustomersPerPart = 50;
constexpr uint64_t kSecuritiesOfAThousand = 685;
constexpr int32_t kQuantityMax = 800;

constexpr std::array kSettings = {
    WorkloadSetting{"records", "customers", "customers", 1, 4'294'967'296, 5'000},
    WorkloadSetting{"securities", nullptr, "securities, 0: 685 for a thousand customers", 0,
                    16'777'215, 0},
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
  options.feed_percent = settings.number32("feeds");
  options.feed_entries = settings.number32("feed-entries");
  options.zipf_theta = settings.fraction("zipf");
  options.history = settings.number32("history");
  const std::string problem = options.problem();
  if (!problem.empty()) return Status(Code::kInvalidArgument, problem);
  return Result<std::unique_ptr<Workload>>(std::make_unique<Tpce>(options));
}

int64_t draw_price(Random& random) {
  return static_cast<int64_t>(random.between(kPriceMin, kPriceMax));
}

// A fifth of the customers is in the first tier, a fifth in the last.
uint32_t draw_tier(Random& random) {
  const uint64_t drawn = random.below(100);
  return drawn < 20 ? 1 : drawn < 80 ? 2 : 3;
}

// The higher the tier the more accounts, five on average.
uint32_t draw_accounts(Random& random, uint32_t tier) {
  constexpr std::array<std::pair<uint64_t, uint64_t>, kTiers> kRange = {{{1, 4}, {2, 8}, {5, 10}}};
  return static_cast<uint32_t>(random.between(kRange[tier - 1].first, kRange[tier - 1].second));
}

// The rows of one customer follow from the number.
class CustomerLoad {
 public:
  CustomerLoad(BulkLoad& rows, std::span<const TableId> tables, uint64_t securities,
               uint64_t customer)
      : rows_(rows),
        tables_(tables),
        securities_(securities),
        customer_(customer),
        random_(customer * 2 + 1) {}

  Status run() {
    tpce::CustomerRow row;
    row.tier = draw_tier(random_);
    row.accounts = draw_accounts(random_, row.tier);
    draw_letters(random_, row.last_name);
    draw_letters(random_, row.first_name);
    for (uint64_t a = 1; a <= row.accounts; ++a) RDMACC_RETURN_IF_ERROR(account(a));
    return rows_.add(tables_[tpce::kCustomer], tpce::customer_key(customer_), bytes_of(row));
  }

 private:
  Status account(uint64_t number) {
    tpce::CustomerAccountRow row;
    row.balance = static_cast<int64_t>(random_.below(1'000'000));
    row.holdings = static_cast<uint32_t>(random_.between(1, kHoldingsMax));
    draw_letters(random_, row.name);
    // Distinct: neighbours of one that is drawn.
    const uint64_t first = random_.below(securities_);
    for (uint64_t h = 1; h <= row.holdings; ++h) {
      tpce::HoldingSummaryRow holding;
      holding.security = static_cast<uint32_t>((first + h) % securities_ + 1);
      holding.quantity = static_cast<int32_t>(random_.between(1, kQuantityMax));
      RDMACC_RETURN_IF_ERROR(rows_.add(tables_[tpce::kHoldingSummary],
                                       tpce::holding_key(customer_, number, h), bytes_of(holding)));
    }
    return rows_.add(tables_[tpce::kCustomerAccount], tpce::account_key(customer_, number),
                     bytes_of(row));
  }

  BulkLoad& rows_;
  const std::span<const TableId> tables_;
  const uint64_t securities_, customer_;
  Random random_;
};

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

std::vector<TableSpec> Tpce::table_specs() const {
  constexpr std::array<size_t, tpce::kTableCount> kRowBytes = {
      sizeof(tpce::CustomerRow), sizeof(tpce::CustomerAccountRow), sizeof(tpce::HoldingSummaryRow),
      sizeof(tpce::LastTradeRow)};
  std::vector<TableSpec> specs;
  for (uint32_t t = 0; t < tpce::kTableCount; ++t) {
    specs.push_back(native_table(kFirstTableNumber + t,
                                 record_bytes(sizeof(NumberKey), kRowBytes[t]), options_.history));
  }
  return specs;
}

uint64_t Tpce::load_parts() const { return options_.customers / kCustomersPerPart + 1; }

Status Tpce::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  CHECK(part < parts);
  BulkLoad rows(session, options);
  const uint64_t last = options_.customers * (part + 1) / parts;
  for (uint64_t c = options_.customers * part / parts + 1; c <= last; ++c) {
    RDMACC_RETURN_IF_ERROR(CustomerLoad(rows, tables(), securities_, c).run());
  }
  for (uint64_t s = securities_ * part / parts + 1; s <= securities_ * (part + 1) / parts; ++s) {
    Random random(s * 2);
    tpce::LastTradeRow row;
    row.price = row.opening_price = draw_price(random);
    RDMACC_RETURN_IF_ERROR(
        rows.add(table(tpce::kLastTrade), tpce::last_trade_key(s), bytes_of(row)));
  }
  return rows.finish();
}

TxnInputs Tpce::draw(Random& random) const {
  TxnInputs inputs;
  if (!random.percent(options_.feed_percent)) {
    inputs.kind = kCustomerPosition;
    inputs.add(random.between(1, options_.customers));
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
    const uint64_t quantity = random.between(1, kQuantityMax);
    inputs.add(security | quantity << 24 | static_cast<uint64_t>(draw_price(random)) << 40);
  }
  return inputs;
}

}  // namespace rdmacc
