#pragma once
#include "engine/workloads/record_chooser.h"
#include "engine/workloads/rows.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

// What customer-position needs of TPC-E's tables: their keys and rows. Customers, accounts of a
// customer, holdings of an account and securities count from 1; money is in cents.
namespace tpce {

constexpr uint64_t kTiers = 3;
constexpr uint64_t kAccountsMax = 10;  // of a customer
constexpr uint64_t kHoldingsMax = 18;  // of an account
constexpr int64_t kPriceMin = 2'000, kPriceMax = 3'000;

// The numbers of the tables, in the order of Tpce::tables().
enum Table : uint32_t { kCustomer, kCustomerAccount, kHoldingSummary, kLastTrade, kTableCount };

inline NumberKey customer_key(uint64_t customer) { return NumberKey(customer); }
inline NumberKey account_key(uint64_t customer, uint64_t account) {
  return NumberKey(customer << 8 | account);
}
inline NumberKey holding_key(uint64_t customer, uint64_t account, uint64_t holding) {
  return NumberKey(customer << 16 | account << 8 | holding);
}
inline NumberKey last_trade_key(uint64_t security) { return NumberKey(security); }

struct CustomerRow {
  uint32_t tier = 0, accounts = 0;
  Text<25> last_name{};
  Text<20> first_name{};
};

struct CustomerAccountRow {
  int64_t balance = 0;
  uint32_t holdings = 0;
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

}  // namespace tpce

struct TpceOptions {
  uint64_t customers = 5'000;
  uint64_t securities = 0;  // 0: 685 for a thousand customers
  uint32_t feed_percent = 10;
  uint32_t feed_entries = 20;  // securities that a market-feed updates
  double zipf_theta = 0;       // of the securities that market-feeds are about
  uint32_t history = kDefaultHistory;

  // Empty, or what does not go together.
  std::string problem() const;
};

constexpr uint32_t kTpceFeedEntriesMax = 20;

extern const WorkloadKind kTpceKind;

// TPC-E's customer-position, which reads what a customer's accounts are worth, and the market-feeds
// that change the prices meanwhile. Invariant: every row refers to rows that are there, and the
// volumes of the last trades add up to the committed market-feeds' quantities.
class Tpce : public Workload {
 public:
  enum Kind : uint32_t { kCustomerPosition, kMarketFeed };

  // What a customer-position answers of one account.
  struct Position {
    int64_t balance = 0;  // cash
    int64_t assets = 0;   // quantities at the prices of the last trades
  };

  // CHECKs that the options have no problem().
  explicit Tpce(const TpceOptions& options);

  const char* name() const override { return "tpce"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Market-feeds; which accounts a customer has, and what they hold, is surveyed.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  Status survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                KeyDeclaration& keys, bool& known) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

  // The logic of customer-position, with its answer, account by account.
  Status customer_position(Session& session, const TxnInputs& inputs,
                           std::vector<Position>& answer) const;

  uint64_t securities() const { return securities_; }

 private:
  struct Holdings;  // what a customer-position reads before prices
  Status read_holdings(Session& session, uint64_t customer, Holdings& found) const;
  Status market_feed(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;
  Status check_rows(Session& session, int64_t delta, std::string& violation) const;

  const TpceOptions options_;
  const uint64_t securities_;
  const RecordChooser chooser_;  // of securities
};

}  // namespace rdmacc
