// TPC-E's customer-position and market-feed, the keys that they declare, and what must hold of the
// rows. Of customer-position that is its first frame, by the customer's number: the history of an
// account's trades is not there.
#include <algorithm>

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

// Shows each row with the number that is its key.
template <typename Row>
Status for_each(Session& session, TableId table, const char* what,
                const std::function<void(uint64_t key, const Row& row)>& see) {
  return for_each_row(session, table, [what, &see](const RowView& view) {
    Row row;
    RDMACC_RETURN_IF_ERROR(row_of(view, what, row));
    see(NumberKey::number_of(view.key), row);
    return Status();
  });
}

}  // namespace

// What is read of a customer before the prices, and the securities, each once and in order.
struct Tpce::Holdings {
  struct Holding {
    size_t account;  // index of `accounts`
    uint32_t security;
    int64_t quantity;
  };
  RowBatch accounts, rows;  // with the keys that were asked for
  std::vector<Position> positions;
  std::vector<Holding> holdings;
  std::vector<uint32_t> securities;
};

Status Tpce::read_holdings(Session& session, uint64_t customer, Holdings& found) const {
  tpce::CustomerRow row;
  RDMACC_RETURN_IF_ERROR(
      read_row(session, table(tpce::kCustomer), tpce::customer_key(customer), "a customer", row));
  for (uint64_t a = 1; a <= row.accounts; ++a) found.accounts.ask(tpce::account_key(customer, a));
  RDMACC_RETURN_IF_ERROR(found.accounts.get(session, table(tpce::kCustomerAccount)));
  for (size_t i = 0; i < found.accounts.size(); ++i) {
    tpce::CustomerAccountRow account;
    RDMACC_RETURN_IF_ERROR(row_of(found.accounts.row(i), "a customer's account", account));
    found.positions.push_back({account.balance, 0});
    for (uint64_t h = 1; h <= account.holdings; ++h) {
      found.rows.ask(tpce::holding_key(customer, i + 1, h));
      found.holdings.push_back({i, 0, 0});
    }
  }
  RDMACC_RETURN_IF_ERROR(found.rows.get(session, table(tpce::kHoldingSummary)));
  for (size_t i = 0; i < found.rows.size(); ++i) {
    tpce::HoldingSummaryRow holding;
    RDMACC_RETURN_IF_ERROR(row_of(found.rows.row(i), "an account's holding", holding));
    found.holdings[i].security = holding.security;
    found.holdings[i].quantity = holding.quantity;
    found.securities.push_back(holding.security);
  }
  std::sort(found.securities.begin(), found.securities.end());
  found.securities.erase(std::unique(found.securities.begin(), found.securities.end()),
                         found.securities.end());
  return Status();
}

Status Tpce::customer_position(Session& session, const TxnInputs& inputs,
                               std::vector<Position>& answer) const {
  Holdings found;
  RDMACC_RETURN_IF_ERROR(read_holdings(session, inputs.values[0], found));
  RowBatch trades;
  for (const uint32_t security : found.securities) trades.ask(tpce::last_trade_key(security));
  RDMACC_RETURN_IF_ERROR(trades.get(session, table(tpce::kLastTrade)));
  std::vector<int64_t> prices;
  for (size_t i = 0; i < trades.size(); ++i) {
    tpce::LastTradeRow trade;
    RDMACC_RETURN_IF_ERROR(row_of(trades.row(i), "a security's last trade", trade));
    prices.push_back(trade.price);
  }
  answer = found.positions;
  for (const Holdings::Holding& holding : found.holdings) {
    const auto at =
        std::lower_bound(found.securities.begin(), found.securities.end(), holding.security);
    answer[holding.account].assets +=
        holding.quantity * prices[static_cast<size_t>(at - found.securities.begin())];
  }
  return Status();
}

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
  std::vector<Position> answer;
  return customer_position(session, inputs, answer);
}

bool Tpce::knows(const TxnInputs& inputs) const {
  if (inputs.kind == kCustomerPosition) {
    return inputs.count == 1 && inputs.values[0] >= 1 && inputs.values[0] <= options_.customers;
  }
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

// ---- The keys

bool Tpce::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (inputs.kind != kMarketFeed) return false;
  for (uint32_t i = kFirstEntry; i < inputs.count; ++i) {
    keys.add(table(tpce::kLastTrade), tpce::last_trade_key(Entry(inputs.values[i]).security),
             KeyUse::kWrite);
  }
  return true;
}

// What a customer's accounts hold does not change here.
Status Tpce::survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                    KeyDeclaration& keys, bool& known) const {
  known = inputs.kind == kCustomerPosition;
  if (!known) return Status();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  Holdings found;
  const Status status = read_holdings(session, inputs.values[0], found);
  session.abort();
  RDMACC_RETURN_IF_ERROR(status);
  keys.add(table(tpce::kCustomer), tpce::customer_key(inputs.values[0]), KeyUse::kRead);
  for (size_t i = 0; i < found.accounts.size(); ++i) {
    keys.add(table(tpce::kCustomerAccount), found.accounts.key(i), KeyUse::kRead);
  }
  for (size_t i = 0; i < found.rows.size(); ++i) {
    keys.add(table(tpce::kHoldingSummary), found.rows.key(i), KeyUse::kRead);
  }
  for (const uint32_t security : found.securities) {
    keys.add(table(tpce::kLastTrade), tpce::last_trade_key(security), KeyUse::kRead);
  }
  return Status();
}

// ---- The invariant

Status Tpce::check(Session& session, const TxnOptions& options, int64_t delta,
                   std::string& violation) const {
  violation.clear();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, check_rows(session, delta, violation)));
  return abort_unless_ok(session, session.commit());
}

Status Tpce::check_rows(Session& session, int64_t delta, std::string& violation) const {
  const auto expect = [&violation](bool holds, const std::string& otherwise) {
    if (!holds && violation.empty()) violation = otherwise;
  };
  uint64_t customers = 0, accounts = 0, accounts_wanted = 0, holdings = 0, holdings_wanted = 0;
  uint64_t trades = 0, volume = 0;
  RDMACC_RETURN_IF_ERROR(for_each<tpce::CustomerRow>(session, table(tpce::kCustomer), "a customer",
                                                     [&](uint64_t, const tpce::CustomerRow& row) {
                                                       ++customers;
                                                       accounts_wanted += row.accounts;
                                                     }));
  RDMACC_RETURN_IF_ERROR(
      for_each<tpce::CustomerAccountRow>(session, table(tpce::kCustomerAccount), "an account",
                                         [&](uint64_t, const tpce::CustomerAccountRow& row) {
                                           ++accounts;
                                           holdings_wanted += row.holdings;
                                         }));
  RDMACC_RETURN_IF_ERROR(for_each<tpce::HoldingSummaryRow>(
      session, table(tpce::kHoldingSummary), "a holding",
      [&](uint64_t, const tpce::HoldingSummaryRow& row) {
        ++holdings;
        expect(row.security >= 1 && row.security <= securities_, "a holding of no security");
      }));
  RDMACC_RETURN_IF_ERROR(for_each<tpce::LastTradeRow>(
      session, table(tpce::kLastTrade), "a last trade",
      [&](uint64_t security, const tpce::LastTradeRow& row) {
        ++trades;
        volume += row.volume;
        expect(security >= 1 && security <= securities_, "a last trade of no security");
        expect(row.price >= tpce::kPriceMin && row.price <= tpce::kPriceMax,
               "security " + std::to_string(security) + " has a price that no feed gives");
      }));
  const auto count = [&expect](const char* what, uint64_t found, uint64_t wanted) {
    expect(found == wanted,
           "there are " + std::to_string(found) + " of " + std::to_string(wanted) + " " + what);
  };
  count("customers", customers, options_.customers);
  count("accounts", accounts, accounts_wanted);
  count("holdings", holdings, holdings_wanted);
  count("last trades", trades, securities_);
  expect(static_cast<int64_t>(volume) == delta, "the volumes add up to " + std::to_string(volume) +
                                                    ", but " + std::to_string(delta) +
                                                    " were committed");
  return Status();
}

}  // namespace rdmacc
