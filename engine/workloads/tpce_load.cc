// TPC-E's rows: those of a customer, and those of a security, follow from its number.
#include "engine/workloads/bulk_load.h"
#include "engine/workloads/tpce.h"

namespace rdmacc {
namespace {

using tpce::kAccountsMax;
using tpce::kHoldingsMax;
using tpce::kQuantityMax;
using tpce::kTiers;
using tpce::TradeStatus;

constexpr uint32_t kFirstTableNumber = 71;
constexpr uint64_t kCustomersPerPart = 50;
constexpr uint64_t kSecondsMax =
    1'000;  // from an event to the next of its trade, and between trades

// A fifth of the customers is in the first tier, a fifth in the last.
uint32_t draw_tier(Random& random) {
  const uint64_t drawn = random.below(100);
  return drawn < 20 ? 1 : drawn < 80 ? 2 : 3;
}

// The higher the tier the more accounts, five on average.
uint32_t draw_accounts(Random& random, uint32_t tier) {
  constexpr std::array<std::pair<uint64_t, uint64_t>, kTiers> kRange = {
      {{1, 4}, {2, 8}, {5, kAccountsMax}}};
  return static_cast<uint32_t>(random.between(kRange[tier - 1].first, kRange[tier - 1].second));
}

int32_t draw_quantity(Random& random) {
  return static_cast<int32_t>(random.between(1, kQuantityMax));
}

// What has become of a trade: a limit order was pending first, three of ten.
std::span<const TradeStatus> draw_events(Random& random) {
  static constexpr std::array<TradeStatus, tpce::kEventsMax> kLimitOrder = {
      tpce::kPending, tpce::kSubmitted, tpce::kCompleted};
  return std::span(kLimitOrder).subspan(random.percent(30) ? 0 : 1);
}

class CustomerLoad {
 public:
  CustomerLoad(BulkLoad& rows, std::span<const TableId> tables, uint64_t securities,
               uint32_t trades, uint64_t customer)
      : rows_(rows),
        tables_(tables),
        securities_(securities),
        trades_(trades),
        customer_(customer),
        random_(customer * 2 + 1) {}

  Status run() {
    tpce::CustomerRow row;
    row.tax_id = tpce::tax_id(customer_);
    row.tier = draw_tier(random_);
    row.accounts = draw_accounts(random_, row.tier);
    draw_letters(random_, row.last_name);
    draw_letters(random_, row.first_name);
    for (uint64_t a = 1; a <= row.accounts; ++a) RDMACC_RETURN_IF_ERROR(account(a));
    RDMACC_RETURN_IF_ERROR(
        add(tpce::kTaxId, tpce::tax_id_key(row.tax_id), tpce::TaxIdRow{customer_}));
    return add(tpce::kCustomer, tpce::customer_key(customer_), row);
  }

 private:
  template <typename Row>
  Status add(tpce::Table table, const NumberKey& key, const Row& row) {
    return rows_.add(tables_[table], key, bytes_of(row));
  }
  uint32_t draw_security() { return static_cast<uint32_t>(random_.between(1, securities_)); }

  Status account(uint64_t number) {
    tpce::CustomerAccountRow row;
    row.balance = static_cast<int64_t>(random_.below(1'000'000));
    row.holdings = static_cast<uint32_t>(random_.between(1, kHoldingsMax));
    row.trades = trades_;
    draw_letters(random_, row.name);
    // Distinct: neighbours of one that is drawn.
    const uint64_t first = random_.below(securities_);
    for (uint64_t h = 1; h <= row.holdings; ++h) {
      tpce::HoldingSummaryRow holding;
      holding.security = static_cast<uint32_t>((first + h) % securities_ + 1);
      holding.quantity = draw_quantity(random_);
      RDMACC_RETURN_IF_ERROR(
          add(tpce::kHoldingSummary, tpce::holding_key(customer_, number, h), holding));
    }
    uint64_t date = 0;
    for (uint64_t t = 1; t <= trades_; ++t) {
      date += random_.between(1, kSecondsMax);
      RDMACC_RETURN_IF_ERROR(trade(tpce::trade_number(customer_, number, t), date));
    }
    return add(tpce::kCustomerAccount, tpce::account_key(customer_, number), row);
  }

  Status trade(uint64_t number, uint64_t date) {
    const std::span<const TradeStatus> events = draw_events(random_);
    tpce::TradeRow row;
    row.date = date;
    row.price = tpce::draw_price(random_);
    row.security = draw_security();
    row.quantity = draw_quantity(random_);
    row.status = events.back();
    row.events = static_cast<uint32_t>(events.size());
    for (uint32_t e = 1; e <= row.events; ++e) {
      RDMACC_RETURN_IF_ERROR(add(tpce::kTradeHistory, tpce::event_key(number, e),
                                 tpce::TradeHistoryRow{date, events[e - 1]}));
      date += random_.between(1, kSecondsMax);
    }
    return add(tpce::kTrade, tpce::trade_key(number), row);
  }

  BulkLoad& rows_;
  const std::span<const TableId> tables_;
  const uint64_t securities_;
  const uint32_t trades_;
  const uint64_t customer_;
  Random random_;
};

Status load_security(BulkLoad& rows, TableId last_trade, uint64_t security) {
  Random random(security * 2);
  tpce::LastTradeRow row;
  row.price = row.opening_price = tpce::draw_price(random);
  return rows.add(last_trade, tpce::last_trade_key(security), bytes_of(row));
}

Status load_statuses(BulkLoad& rows, TableId status_type) {
  for (uint64_t s = 1; s <= tpce::kStatusNames.size(); ++s) {
    tpce::StatusTypeRow row;
    set_text(row.name, tpce::kStatusNames[s - 1]);
    RDMACC_RETURN_IF_ERROR(rows.add(status_type, tpce::status_key(s), bytes_of(row)));
  }
  return Status();
}

}  // namespace

std::vector<TableSpec> Tpce::table_specs() const {
  constexpr std::array<size_t, tpce::kTableCount> kRowBytes = {
      sizeof(tpce::CustomerRow),       sizeof(tpce::CustomerAccountRow),
      sizeof(tpce::HoldingSummaryRow), sizeof(tpce::LastTradeRow),
      sizeof(tpce::TaxIdRow),          sizeof(tpce::TradeRow),
      sizeof(tpce::TradeHistoryRow),   sizeof(tpce::StatusTypeRow)};
  std::vector<TableSpec> specs;
  for (uint32_t t = 0; t < tpce::kTableCount; ++t) {
    specs.push_back(native_table(kFirstTableNumber + t,
                                 record_bytes(sizeof(NumberKey), kRowBytes[t]), options_.history));
  }
  return specs;
}

uint64_t Tpce::load_parts() const { return options_.customers / kCustomersPerPart + 1; }

Status Tpce::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  BulkLoad rows(session, options);
  const LoadPart customers = part_of_load(options_.customers, part, parts);
  for (uint64_t c = customers.begin + 1; c <= customers.end; ++c) {
    RDMACC_RETURN_IF_ERROR(CustomerLoad(rows, tables(), securities_, options_.trades, c).run());
  }
  const LoadPart securities = part_of_load(securities_, part, parts);
  for (uint64_t s = securities.begin + 1; s <= securities.end; ++s) {
    RDMACC_RETURN_IF_ERROR(load_security(rows, table(tpce::kLastTrade), s));
  }
  if (part == 0) RDMACC_RETURN_IF_ERROR(load_statuses(rows, table(tpce::kStatusType)));
  return rows.finish();
}

}  // namespace rdmacc
