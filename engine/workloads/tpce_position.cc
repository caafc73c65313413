// TPC-E's customer-position: its first frame, by the customer's number or tax id, and where it is
// asked for the second, what has become of the last trades of one account.
#include <algorithm>

#include "engine/workloads/tpce.h"

namespace rdmacc {
namespace {

enum Value : uint32_t { kCustomer, kByTaxId, kAccount };  // kAccount 0: no history

struct Holding {
  size_t account;  // index of the positions
  uint32_t security;
  int64_t quantity;
};

struct Trade {
  uint64_t number;
  tpce::TradeRow row;
};

// The rows of one customer-position, batch after batch.
class PositionRows {
 public:
  PositionRows(Session& session, std::span<const TableId> tables, const TxnInputs& inputs)
      : session_(session), tables_(tables), inputs_(inputs) {}

  // All that says which other rows there are to read: accounts, holdings, trades.
  Status find() {
    RDMACC_RETURN_IF_ERROR(find_customer());
    RDMACC_RETURN_IF_ERROR(find_accounts());
    RDMACC_RETURN_IF_ERROR(find_holdings());
    return inputs_.values[kAccount] == 0 ? Status() : find_trades();
  }

  // Behind find(): the rest, and the answer.
  Status tell(Tpce::Answer& answer) {
    answer = {};
    RDMACC_RETURN_IF_ERROR(tell_positions(answer.positions));
    return trades_.empty() ? Status() : tell_history(answer.history);
  }

  // Behind find(): the keys of both.
  void declare(KeyDeclaration& keys) const {
    if (inputs_.values[kByTaxId] != 0) read(keys, tpce::kTaxId, tax_id_key());
    read(keys, tpce::kCustomer, tpce::customer_key(customer_));
    for (size_t i = 0; i < accounts_.size(); ++i) {
      read(keys, tpce::kCustomerAccount, accounts_.key(i));
    }
    for (size_t i = 0; i < held_.size(); ++i) read(keys, tpce::kHoldingSummary, held_.key(i));
    for (const uint32_t security : securities_) {
      read(keys, tpce::kLastTrade, tpce::last_trade_key(security));
    }
    for (const Trade& trade : trades_) {
      read(keys, tpce::kTrade, tpce::trade_key(trade.number));
      for (uint32_t e = 1; e <= trade.row.events; ++e) {
        read(keys, tpce::kTradeHistory, tpce::event_key(trade.number, e));
      }
    }
    if (trades_.empty()) return;
    for (uint64_t s = 1; s <= tpce::kStatusNames.size(); ++s) {
      read(keys, tpce::kStatusType, tpce::status_key(s));
    }
  }

 private:
  void read(KeyDeclaration& keys, tpce::Table table, std::string_view key) const {
    keys.add(tables_[table], key, KeyUse::kRead);
  }
  NumberKey tax_id_key() const { return tpce::tax_id_key(tpce::tax_id(inputs_.values[kCustomer])); }

  Status find_customer() {
    customer_ = inputs_.values[kCustomer];
    if (inputs_.values[kByTaxId] != 0) {
      tpce::TaxIdRow named;
      RDMACC_RETURN_IF_ERROR(
          read_row(session_, tables_[tpce::kTaxId], tax_id_key(), "a tax id", named));
      customer_ = named.customer;
    }
    tpce::CustomerRow row;
    RDMACC_RETURN_IF_ERROR(read_row(session_, tables_[tpce::kCustomer],
                                    tpce::customer_key(customer_), "a customer", row));
    for (uint64_t a = 1; a <= row.accounts; ++a) accounts_.ask(tpce::account_key(customer_, a));
    return Status();
  }

  Status find_accounts() {
    RDMACC_RETURN_IF_ERROR(accounts_.get(session_, tables_[tpce::kCustomerAccount]));
    for (size_t i = 0; i < accounts_.size(); ++i) {
      tpce::CustomerAccountRow account;
      RDMACC_RETURN_IF_ERROR(row_of(accounts_.row(i), "a customer's account", account));
      positions_.push_back({account.balance, 0});
      trades_of_.push_back(account.trades);
      for (uint64_t h = 1; h <= account.holdings; ++h) {
        held_.ask(tpce::holding_key(customer_, i + 1, h));
        holdings_.push_back({i, 0, 0});
      }
    }
    return Status();
  }

  // And the securities, each once and in order.
  Status find_holdings() {
    RDMACC_RETURN_IF_ERROR(held_.get(session_, tables_[tpce::kHoldingSummary]));
    for (size_t i = 0; i < held_.size(); ++i) {
      tpce::HoldingSummaryRow row;
      RDMACC_RETURN_IF_ERROR(row_of(held_.row(i), "an account's holding", row));
      holdings_[i].security = row.security;
      holdings_[i].quantity = row.quantity;
      securities_.push_back(row.security);
    }
    std::sort(securities_.begin(), securities_.end());
    securities_.erase(std::unique(securities_.begin(), securities_.end()), securities_.end());
    return Status();
  }

  // Of the account that was drawn, before it was known how many there are.
  Status find_trades() {
    if (positions_.empty()) return Status();
    const uint64_t account = (inputs_.values[kAccount] - 1) % positions_.size() + 1;
    const uint64_t last = trades_of_[account - 1];
    RowBatch rows;
    for (uint64_t t = last; t > 0 && t + tpce::kTradesTold > last; --t) {
      trades_.push_back({tpce::trade_number(customer_, account, t), {}});
      rows.ask(tpce::trade_key(trades_.back().number));
    }
    RDMACC_RETURN_IF_ERROR(rows.get(session_, tables_[tpce::kTrade]));
    for (size_t i = 0; i < rows.size(); ++i) {
      RDMACC_RETURN_IF_ERROR(row_of(rows.row(i), "an account's trade", trades_[i].row));
    }
    return Status();
  }

  Status tell_positions(std::vector<Tpce::Position>& positions) {
    RowBatch rows;
    for (const uint32_t security : securities_) rows.ask(tpce::last_trade_key(security));
    RDMACC_RETURN_IF_ERROR(rows.get(session_, tables_[tpce::kLastTrade]));
    std::vector<int64_t> prices;
    for (size_t i = 0; i < rows.size(); ++i) {
      tpce::LastTradeRow trade;
      RDMACC_RETURN_IF_ERROR(row_of(rows.row(i), "a security's last trade", trade));
      prices.push_back(trade.price);
    }
    positions = positions_;
    for (const Holding& holding : holdings_) {
      const auto at = std::lower_bound(securities_.begin(), securities_.end(), holding.security);
      positions[holding.account].assets +=
          holding.quantity * prices[static_cast<size_t>(at - securities_.begin())];
    }
    return Status();
  }

  Status tell_history(std::vector<Tpce::Event>& history) {
    RowBatch events, names;
    for (uint64_t s = 1; s <= tpce::kStatusNames.size(); ++s) names.ask(tpce::status_key(s));
    RDMACC_RETURN_IF_ERROR(names.get(session_, tables_[tpce::kStatusType]));
    for (const Trade& trade : trades_) {
      for (uint32_t e = 1; e <= trade.row.events; ++e) {
        events.ask(tpce::event_key(trade.number, e));
        history.push_back({trade.number, 0, trade.row.security, trade.row.quantity, {}});
      }
    }
    RDMACC_RETURN_IF_ERROR(events.get(session_, tables_[tpce::kTradeHistory]));
    for (size_t i = 0; i < events.size(); ++i) {
      tpce::TradeHistoryRow event;
      tpce::StatusTypeRow status;
      RDMACC_RETURN_IF_ERROR(row_of(events.row(i), "a trade's history", event));
      if (event.status < 1 || event.status > names.size()) {
        return Status(Code::kCorrupt, "a trade has no such status");
      }
      RDMACC_RETURN_IF_ERROR(row_of(names.row(event.status - 1), "a status", status));
      history[i].date = event.date;
      history[i].status = status.name;
    }
    std::stable_sort(history.begin(), history.end(),
                     [](const auto& a, const auto& b) { return a.date > b.date; });
    return Status();
  }

  Session& session_;
  const std::span<const TableId> tables_;
  const TxnInputs& inputs_;
  uint64_t customer_ = 0;
  RowBatch accounts_, held_;
  std::vector<Tpce::Position> positions_;
  std::vector<uint32_t> trades_of_;  // each account
  std::vector<Holding> holdings_;
  std::vector<uint32_t> securities_;
  std::vector<Trade> trades_;  // the latest first
};

}  // namespace

Status Tpce::customer_position(Session& session, const TxnInputs& inputs, Answer& answer) const {
  PositionRows rows(session, tables(), inputs);
  RDMACC_RETURN_IF_ERROR(rows.find());
  return rows.tell(answer);
}

// What a customer's accounts hold and have traded does not change here.
Status Tpce::survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                    KeyDeclaration& keys, bool& known) const {
  known = inputs.kind == kCustomerPosition;
  if (!known) return Status();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  PositionRows rows(session, tables(), inputs);
  const Status status = rows.find();
  session.abort();
  RDMACC_RETURN_IF_ERROR(status);
  rows.declare(keys);
  return Status();
}

bool Tpce::knows_position(const TxnInputs& inputs) const {
  const auto& values = inputs.values;
  return inputs.count == kAccount + 1 && values[kCustomer] >= 1 &&
         values[kCustomer] <= options_.customers && values[kByTaxId] <= 1 &&
         values[kAccount] <= tpce::kAccountsMax;
}

}  // namespace rdmacc
