// TPC-E's market-feed, as far as it changes prices (no order waits for them here), what there is to
// say of both transactions' inputs, and the check.
#include "engine/workloads/tpce.h"

namespace rdmacc {
namespace {

// An entry of a market-feed: 24 bits security, 16 quantity, 24 price.
struct Entry {
  explicit Entry(uint64_t value)
      : security(value & 0xFFFFFF),
        quantity(value >> 24 & 0xFFFF),
        price(static_cast<int64_t>(value >> 40)) {}
  uint64_t security, quantity;
  int64_t price;
};

constexpr uint32_t kFirstEntry = 1;  // before them, the date

// What must hold of the rows: each refers to rows that are there, none is missing, and the volumes
// of the last trades add up to what the market-feeds traded.
class TpceCheck {
 public:
  TpceCheck(Session& session, std::span<const TableId> tables, uint64_t securities)
      : session_(session), tables_(tables), securities_(securities) {}

  // In one transaction, which its caller begins and ends.
  Status read_all() {
    RDMACC_RETURN_IF_ERROR(see_customers());
    RDMACC_RETURN_IF_ERROR(see_holdings());
    RDMACC_RETURN_IF_ERROR(see_last_trades());
    return see_trades();
  }

  // The first violation, or nothing.
  std::string violation(uint64_t customers, int64_t delta) {
    count(tpce::kCustomer, "customers", customers);
    count(tpce::kTaxId, "tax ids", customers);
    count(tpce::kCustomerAccount, "accounts", accounts_);
    count(tpce::kHoldingSummary, "holdings", holdings_);
    count(tpce::kLastTrade, "last trades", securities_);
    count(tpce::kTrade, "trades", trades_);
    count(tpce::kTradeHistory, "events of trades", events_);
    count(tpce::kStatusType, "statuses", tpce::kStatusNames.size());
    expect(static_cast<int64_t>(volume_) == delta, "the volumes add up to " +
                                                       std::to_string(volume_) + ", but " +
                                                       std::to_string(delta) + " were committed");
    return wrong_;
  }

 private:
  // Shows each row with the number that is its key.
  template <typename Row, typename See>
  Status for_each(tpce::Table table, const char* what, See see) {
    return for_each_row(session_, tables_[table], [&](const RowView& view) {
      Row row;
      RDMACC_RETURN_IF_ERROR(row_of(view, what, row));
      ++found_[table];
      see(NumberKey::number_of(view.key), row);
      return Status();
    });
  }
  void expect(bool holds, const std::string& otherwise) {
    if (!holds && wrong_.empty()) wrong_ = otherwise;
  }
  void count(tpce::Table table, const char* what, uint64_t wanted) {
    expect(found_[table] == wanted, "there are " + std::to_string(found_[table]) + " of " +
                                        std::to_string(wanted) + " " + what);
  }
  void expect_security(uint64_t security, const char* of) {
    expect(security >= 1 && security <= securities_, std::string(of) + " of no security");
  }

  Status see_customers() {
    RDMACC_RETURN_IF_ERROR(for_each<tpce::CustomerRow>(
        tpce::kCustomer, "a customer", [this](uint64_t customer, const tpce::CustomerRow& row) {
          accounts_ += row.accounts;
          expect(row.tax_id == tpce::tax_id(customer), "a customer has another one's tax id");
        }));
    return for_each<tpce::TaxIdRow>(
        tpce::kTaxId, "a tax id", [this](uint64_t tax_id, const tpce::TaxIdRow& row) {
          expect(tax_id == tpce::tax_id(row.customer), "a tax id is of another customer");
        });
  }

  Status see_holdings() {
    RDMACC_RETURN_IF_ERROR(
        for_each<tpce::CustomerAccountRow>(tpce::kCustomerAccount, "an account",
                                           [this](uint64_t, const tpce::CustomerAccountRow& row) {
                                             holdings_ += row.holdings;
                                             trades_ += row.trades;
                                           }));
    return for_each<tpce::HoldingSummaryRow>(tpce::kHoldingSummary, "a holding",
                                             [this](uint64_t, const tpce::HoldingSummaryRow& row) {
                                               expect_security(row.security, "a holding");
                                             });
  }

  Status see_last_trades() {
    return for_each<tpce::LastTradeRow>(
        tpce::kLastTrade, "a last trade", [this](uint64_t security, const tpce::LastTradeRow& row) {
          volume_ += row.volume;
          expect_security(security, "a last trade");
          expect(row.price >= tpce::kPriceMin && row.price <= tpce::kPriceMax,
                 "security " + std::to_string(security) + " has a price that no feed gives");
        });
  }

  Status see_trades() {
    RDMACC_RETURN_IF_ERROR(for_each<tpce::TradeRow>(tpce::kTrade, "a trade",
                                                    [this](uint64_t, const tpce::TradeRow& row) {
                                                      events_ += row.events;
                                                      expect_security(row.security, "a trade");
                                                    }));
    RDMACC_RETURN_IF_ERROR(for_each<tpce::TradeHistoryRow>(
        tpce::kTradeHistory, "an event of a trade",
        [this](uint64_t, const tpce::TradeHistoryRow& row) {
          expect(row.status >= 1 && row.status <= tpce::kStatusNames.size(),
                 "an event of a trade has no status");
        }));
    return for_each<tpce::StatusTypeRow>(tpce::kStatusType, "a status",
                                         [](uint64_t, const tpce::StatusTypeRow&) {});
  }

  Session& session_;
  const std::span<const TableId> tables_;
  const uint64_t securities_;
  std::array<uint64_t, tpce::kTableCount> found_{};
  uint64_t accounts_ = 0, holdings_ = 0, trades_ = 0, events_ = 0;  // that others tell of
  uint64_t volume_ = 0;
  std::string wrong_;
};

}  // namespace

Status Tpce::market_feed(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  RowBatch trades;
  for (uint32_t i = kFirstEntry; i < inputs.count; ++i) {
    trades.ask(tpce::last_trade_key(Entry(inputs.values[i]).security));
  }
  RDMACC_RETURN_IF_ERROR(trades.get(session, table(tpce::kLastTrade), true));
  for (size_t i = 0; i < trades.size(); ++i) {
    const Entry entry(inputs.values[kFirstEntry + i]);
    tpce::LastTradeRow trade;
    RDMACC_RETURN_IF_ERROR(row_of(trades.row(i), "a security's last trade", trade));
    trade.price = entry.price;
    trade.volume += entry.quantity;
    trade.date = inputs.values[0];
    RDMACC_RETURN_IF_ERROR(session.put(table(tpce::kLastTrade), trades.key(i), bytes_of(trade)));
    effect.delta += static_cast<int64_t>(entry.quantity);
  }
  return Status();
}

Status Tpce::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  if (inputs.kind == kMarketFeed) return market_feed(session, inputs, effect);
  Answer answer;
  return customer_position(session, inputs, answer);
}

bool Tpce::knows(const TxnInputs& inputs) const {
  if (inputs.kind == kCustomerPosition) return knows_position(inputs);
  if (inputs.kind != kMarketFeed || inputs.count != kFirstEntry + options_.feed_entries) {
    return false;
  }
  for (uint32_t i = kFirstEntry; i < inputs.count; ++i) {
    const Entry entry(inputs.values[i]);
    if (entry.security < 1 || entry.security > securities_ || entry.price < tpce::kPriceMin ||
        entry.price > tpce::kPriceMax) {
      return false;
    }
  }
  return true;
}

bool Tpce::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (inputs.kind != kMarketFeed) return false;
  for (uint32_t i = kFirstEntry; i < inputs.count; ++i) {
    keys.add(table(tpce::kLastTrade), tpce::last_trade_key(Entry(inputs.values[i]).security),
             KeyUse::kWrite);
  }
  return true;
}

Status Tpce::check(Session& session, const TxnOptions& options, int64_t delta,
                   std::string& violation) const {
  violation.clear();
  TpceCheck rows(session, tables(), securities_);
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, rows.read_all()));
  violation = rows.violation(options_.customers, delta);
  return abort_unless_ok(session, session.commit());
}

}  // namespace rdmacc
