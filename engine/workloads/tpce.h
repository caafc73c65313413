#pragma once
#include "engine/workloads/record_chooser.h"
#include "engine/workloads/rows.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

// What customer-position needs of TPC-E's tables: their keys and rows. Customers, accounts of a
// customer, holdings and trades of an account, events of a trade and securities count from 1; money
// is in cents, dates are seconds.
namespace tpce {

constexpr uint64_t kTiers = 3;
constexpr uint64_t kAccountsMax = 10;  // of a customer
constexpr uint64_t kHoldingsMax = 18;  // of an account
constexpr uint64_t kTradesMax = 65'535;
constexpr uint64_t kEventsMax = 3;    // of a trade
constexpr uint64_t kTradesTold = 10;  // of the account, the last ones: frame 2
constexpr int64_t kPriceMin = 2'000, kPriceMax = 3'000;
constexpr int32_t kQuantityMax = 800;

inline int64_t draw_price(Random& random) {
  return static_cast<int64_t>(random.between(kPriceMin, kPriceMax));
}

// The numbers of the tables, in the order of Tpce::tables(). kTaxId is not TPC-E's own: it says
// which customer has a tax id.
enum Table : uint32_t {
  kCustomer,
  kCustomerAccount,
  kHoldingSummary,
  kLastTrade,
  kTaxId,
  kTrade,
  kTradeHistory,
  kStatusType,
  kTableCount
};

enum TradeStatus : uint32_t { kPending = 1, kSubmitted, kCompleted, kCanceled, kActive };
constexpr std::array<const char*, kActive> kStatusNames = {"Pending", "Submitted", "Completed",
                                                           "Canceled", "Active"};

inline NumberKey customer_key(uint64_t customer) { return NumberKey(customer); }
inline NumberKey account_key(uint64_t customer, uint64_t account) {
  return NumberKey(customer << 8 | account);
}
inline NumberKey holding_key(uint64_t customer, uint64_t account, uint64_t holding) {
  return NumberKey(customer << 16 | account << 8 | holding);
}
inline NumberKey last_trade_key(uint64_t security) { return NumberKey(security); }

// Tax ids are not in the order of customers: another number for each.
inline uint64_t tax_id(uint64_t customer) { return customer * 0x9E3779B97F4A7C15; }
inline NumberKey tax_id_key(uint64_t tax_id) { return NumberKey(tax_id); }

// A trade's number tells its account, and its place among the account's.
inline uint64_t trade_number(uint64_t customer, uint64_t account, uint64_t trade) {
  return customer << 24 | account << 16 | trade;
}
inline NumberKey trade_key(uint64_t trade_number) { return NumberKey(trade_number); }
inline NumberKey event_key(uint64_t trade_number, uint64_t event) {
  return NumberKey(trade_number << 4 | event);
}
inline NumberKey status_key(uint64_t status) { return NumberKey(status); }

struct CustomerRow {
  uint64_t tax_id = 0;
  uint32_t tier = 0, accounts = 0;
  Text<25> last_name{};
  Text<20> first_name{};
};

struct CustomerAccountRow {
  int64_t balance = 0;
  uint32_t holdings = 0, trades = 0;
  Text<50> name{};
};

struct HoldingSummaryRow {
  uint32_t security = 0;
  int32_t quantity = 0;
};

struct LastTradeRow {
  int64_t price = 0, opening_price = 0;
  uint64_t volume = 0, date = 0;
};

struct TaxIdRow {
  uint64_t customer = 0;
};

struct TradeRow {
  uint64_t date = 0;
  int64_t price = 0;
  uint32_t security = 0;
  int32_t quantity = 0;
  uint32_t status = 0, events = 0;
};

struct TradeHistoryRow {
  uint64_t date = 0;
  uint32_t status = 0;
};

struct StatusTypeRow {
  Text<10> name{};
};

}  // namespace tpce

struct TpceOptions {
  uint64_t customers = 5'000;
  uint64_t securities = 0;        // 0: 685 for a thousand customers
  uint32_t trades = 10;           // of an account
  uint32_t tax_id_percent = 50;   // of the positions, by tax id in place of the customer's number
  uint32_t history_percent = 50;  // of the positions, also with an account's last trades: frame 2
  uint32_t feed_percent = 10;
  uint32_t feed_entries = 20;  // securities that a market-feed updates
  double zipf_theta = 0;       // of the securities that market-feeds are about
  uint32_t history = kDefaultHistory;

  // Empty, or what does not go together.
  std::string problem() const;
};

constexpr uint32_t kTpceFeedEntriesMax = 20;

extern const WorkloadKind kTpceKind;

// TPC-E's customer-position, which reads what a customer's accounts are worth and what has become
// of the last trades of one, and the market-feeds that change the prices meanwhile. Invariant:
// every row refers to rows that are there, and the volumes of the last trades add up to the
// committed market-feeds' quantities.
class Tpce : public Workload {
 public:
  enum Kind : uint32_t { kCustomerPosition, kMarketFeed };

  // What a customer-position answers of one account.
  struct Position {
    int64_t balance = 0;  // cash
    int64_t assets = 0;   // quantities at the prices of the last trades
  };
  // One event of one of the last trades.
  struct Event {
    uint64_t trade = 0, date = 0;
    uint32_t security = 0;
    int32_t quantity = 0;
    Text<10> status{};
  };
  struct Answer {
    std::vector<Position> positions;  // account by account
    std::vector<Event> history;       // the latest event first; empty if not asked for
  };

  // CHECKs that the options have no problem().
  explicit Tpce(const TpceOptions& options);

  const char* name() const override { return "tpce"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Market-feeds; which accounts a customer has, what they hold and have traded, is surveyed.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  Status survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                KeyDeclaration& keys, bool& known) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

  // The logic of customer-position, with its answer.
  Status customer_position(Session& session, const TxnInputs& inputs, Answer& answer) const;

  uint64_t securities() const { return securities_; }

 private:
  bool knows_position(const TxnInputs& inputs) const;
  Status market_feed(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;

  const TpceOptions options_;
  const uint64_t securities_;
  const RecordChooser chooser_;  // of securities
};

}  // namespace rdmacc
