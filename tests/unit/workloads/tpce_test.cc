// TPC-E's customer-position and market-feed: what they answer and leave, and what their check
// notices.
#include "engine/workloads/tpce.h"

#include <map>
#include <set>
#include <tuple>

#include "engine/protocols/registry.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

using tpce::CustomerAccountRow;
using tpce::CustomerRow;
using tpce::HoldingSummaryRow;
using tpce::LastTradeRow;
using tpce::TradeHistoryRow;
using tpce::TradeRow;

constexpr uint64_t kCustomers = 12, kSecurities = 30, kTrades = 13;

class TpceTest : public testing::Test {
 protected:
  LoadedWorkload tpce_{"tpce", "records=12,securities=30,trades=13,feed-entries=4"};

  template <typename Row>
  Row row(tpce::Table table, const NumberKey& key) {
    const std::string bytes = tpce_.row(tpce_.table(table), key);
    Row row;
    EXPECT_EQ(bytes.size(), sizeof(Row));
    if (bytes.size() == sizeof(Row)) std::memcpy(&row, bytes.data(), sizeof(Row));
    return row;
  }
  // `account` 0: without a history.
  Tpce::Answer position(uint64_t customer, bool by_tax_id = false, uint64_t account = 0) {
    TxnInputs inputs;
    inputs.kind = Tpce::kCustomerPosition;
    for (const uint64_t value : {customer, uint64_t{by_tax_id}, account}) inputs.add(value);
    EXPECT_TRUE(tpce_.workload().knows(inputs));
    Tpce::Answer answer;
    tpce_.in_transaction([&](Session& session) {
      return dynamic_cast<const Tpce&>(tpce_.workload()).customer_position(session, inputs, answer);
    });
    return answer;
  }
  TxnInputs draw(Tpce::Kind kind, Random& random) {
    TxnInputs inputs;
    do inputs = tpce_.workload().draw(random);
    while (inputs.kind != kind);
    return inputs;
  }
};

TEST(TpceDraw, IsOfAsManyMarketFeedsAsAsked) {
  for (const uint32_t percent : {0, 30, 100}) {
    auto made = make_workload("tpce", "feeds=" + std::to_string(percent) + ",zipf=0.9", {2, true});
    ASSERT_TRUE(made.ok());
    Random random(4);
    std::map<uint32_t, uint32_t> kinds;
    for (int i = 0; i < 2'000; ++i) {
      const TxnInputs inputs = (*made)->draw(random);
      EXPECT_TRUE((*made)->knows(inputs));
      ++kinds[inputs.kind];
      if (inputs.kind != Tpce::kMarketFeed) continue;
      std::set<uint64_t> securities;
      for (uint32_t v = 1; v < inputs.count; ++v) securities.insert(inputs.values[v] & 0xFFFFFF);
      EXPECT_EQ(securities.size(), 20u);
    }
    EXPECT_NEAR(kinds[Tpce::kMarketFeed], percent * 20, 100);
  }
}

TEST(TpceDraw, AsksForTaxIdsAndHistoriesAsOftenAsAsked) {
  for (const uint32_t percent : {0, 40, 100}) {
    const std::string share = std::to_string(percent);
    auto made =
        make_workload("tpce", "feeds=0,tax-ids=" + share + ",trade-histories=" + share, {2, true});
    ASSERT_TRUE(made.ok());
    Random random(8);
    uint64_t tax_ids = 0, histories = 0;
    for (int i = 0; i < 2'000; ++i) {
      const TxnInputs inputs = (*made)->draw(random);
      EXPECT_TRUE((*made)->knows(inputs));
      tax_ids += inputs.values[1];
      histories += inputs.values[2] > 0;
    }
    EXPECT_NEAR(static_cast<double>(tax_ids), percent * 20, 100);
    EXPECT_NEAR(static_cast<double>(histories), percent * 20, 100);
  }
}

TEST(TpceDraw, HasSecuritiesInProportionUnlessTold) {
  const auto securities = [](const char* settings) {
    auto made = make_workload("tpce", settings, {2, true});
    return made.ok() ? dynamic_cast<const Tpce&>(**made).securities() : 0;
  };
  EXPECT_EQ(securities(""), 3'425u);
  EXPECT_EQ(securities("records=2000"), 1'370u);
  EXPECT_EQ(securities("records=10"), 38u);
  EXPECT_EQ(securities("securities=18,feed-entries=5"), 18u);
  EXPECT_EQ(make_workload("tpce", "securities=19", {2, true}).status().message(),
            "--securities must be 0 or at least 20, which an account may hold or a market-feed is "
            "about");
}

TEST_F(TpceTest, RefusesInputsThatItWouldNotDraw) {
  Random random(5);
  const TxnInputs feed = draw(Tpce::kMarketFeed, random);
  TxnInputs other = feed;
  other.values[1] = (other.values[1] & ~0xFFFFFFull) | (kSecurities + 1);
  EXPECT_FALSE(tpce_.workload().knows(other));
  other = feed;
  other.values[2] &= 0xFFFFFFFFFF;  // no price
  EXPECT_FALSE(tpce_.workload().knows(other));
  other = feed;
  --other.count;
  EXPECT_FALSE(tpce_.workload().knows(other));
  const TxnInputs position = draw(Tpce::kCustomerPosition, random);
  for (const auto& [value, wrong] : {std::pair{0, kCustomers + 1}, {1, 2}, {2, 11}}) {
    other = position;
    other.values[static_cast<size_t>(value)] = wrong;
    EXPECT_FALSE(tpce_.workload().knows(other));
  }
}

TEST_F(TpceTest, PositionIsWhatTheAccountsHoldAtTheLastPrices) {
  Random random(6);
  std::set<size_t> how_many;
  for (uint64_t c = 1; c <= kCustomers; ++c) {
    tpce_.run(draw(Tpce::kMarketFeed, random));
    const auto customer = row<CustomerRow>(tpce::kCustomer, tpce::customer_key(c));
    const std::vector<Tpce::Position> answer = position(c, c % 2 == 0).positions;
    ASSERT_EQ(answer.size(), customer.accounts);
    how_many.insert(answer.size());
    for (uint64_t a = 1; a <= customer.accounts; ++a) {
      const auto account = row<CustomerAccountRow>(tpce::kCustomerAccount, tpce::account_key(c, a));
      EXPECT_TRUE(account.holdings >= 1 && account.holdings <= tpce::kHoldingsMax);
      int64_t assets = 0;
      std::set<uint32_t> securities;
      for (uint64_t h = 1; h <= account.holdings; ++h) {
        const auto holding =
            row<HoldingSummaryRow>(tpce::kHoldingSummary, tpce::holding_key(c, a, h));
        securities.insert(holding.security);
        assets += holding.quantity *
                  row<LastTradeRow>(tpce::kLastTrade, tpce::last_trade_key(holding.security)).price;
      }
      EXPECT_EQ(securities.size(), account.holdings);
      EXPECT_EQ(answer[a - 1].assets, assets);
      EXPECT_EQ(answer[a - 1].balance, account.balance);
    }
  }
  EXPECT_GT(how_many.size(), 2u);
}

TEST_F(TpceTest, HistoryIsOfTheLastTradesOfTheAccount) {
  std::set<size_t> events;
  for (uint64_t c = 1; c <= kCustomers; ++c) {
    const auto accounts = row<CustomerRow>(tpce::kCustomer, tpce::customer_key(c)).accounts;
    const uint64_t account = accounts;  // the last one
    // Numbers begin again behind it.
    const uint64_t asked = 2 * accounts <= tpce::kAccountsMax ? 2 * accounts : account;
    const auto trades =
        row<CustomerAccountRow>(tpce::kCustomerAccount, tpce::account_key(c, account)).trades;
    ASSERT_EQ(trades, kTrades);
    using Told = std::tuple<uint64_t, uint64_t, uint32_t, int32_t, std::string>;
    std::multiset<Told> wanted, told;
    for (uint64_t t = trades - tpce::kTradesTold + 1; t <= trades; ++t) {
      const uint64_t number = tpce::trade_number(c, account, t);
      const auto trade = row<TradeRow>(tpce::kTrade, tpce::trade_key(number));
      for (uint64_t e = 1; e <= trade.events; ++e) {
        const auto event = row<TradeHistoryRow>(tpce::kTradeHistory, tpce::event_key(number, e));
        EXPECT_EQ(event.status == tpce::kCompleted, e == trade.events);
        wanted.emplace(number, event.date, trade.security, trade.quantity,
                       tpce::kStatusNames[event.status - 1]);
      }
    }
    const std::vector<Tpce::Event> history = position(c, true, asked).history;
    events.insert(history.size());
    for (const auto& event : history) {
      told.emplace(event.trade, event.date, event.security, event.quantity, event.status.data());
    }
    EXPECT_EQ(told, wanted);
    EXPECT_TRUE(std::is_sorted(history.begin(), history.end(),
                               [](const auto& a, const auto& b) { return a.date > b.date; }));
    EXPECT_TRUE(position(c).history.empty());
  }
  EXPECT_GT(events.size(), 2u);
}

TEST_F(TpceTest, MarketFeedChangesTheLastTradesOfItsSecurities) {
  Random random(7);
  const TxnInputs feed = draw(Tpce::kMarketFeed, random);
  const uint64_t security = feed.values[2] & 0xFFFFFF, quantity = feed.values[2] >> 24 & 0xFFFF;
  const auto before = row<LastTradeRow>(tpce::kLastTrade, tpce::last_trade_key(security));
  tpce_.run(feed);
  tpce_.run(feed);
  const auto after = row<LastTradeRow>(tpce::kLastTrade, tpce::last_trade_key(security));
  EXPECT_EQ(after.volume, before.volume + 2 * quantity);
  EXPECT_EQ(after.price, static_cast<int64_t>(feed.values[2] >> 40));
  EXPECT_EQ(after.opening_price, before.opening_price);
  EXPECT_EQ(after.date, feed.values[0]);
  EXPECT_EQ(tpce_.violation(), "");
  EXPECT_EQ(tpce_.violation(1), "the volumes add up to " + std::to_string(tpce_.delta()) +
                                    ", but " + std::to_string(tpce_.delta() + 1) +
                                    " were committed");
}

TEST_F(TpceTest, ItsCheckNoticesRowsThatAreLostOrReferToNone) {
  const auto found = [this](tpce::Table table, const NumberKey& key, std::string_view changed) {
    const std::string good = tpce_.row(tpce_.table(table), key);
    tpce_.overwrite(tpce_.table(table), key, changed);
    std::string wrong = tpce_.violation();
    tpce_.overwrite(tpce_.table(table), key, good);
    return wrong;
  };
  EXPECT_EQ(found(tpce::kCustomer, tpce::customer_key(3), ""), "there are 11 of 12 customers");
  EXPECT_NE(found(tpce::kCustomerAccount, tpce::account_key(3, 1), "").find(" accounts"),
            std::string::npos);
  EXPECT_NE(found(tpce::kHoldingSummary, tpce::holding_key(3, 1, 1), "").find(" holdings"),
            std::string::npos);
  EXPECT_EQ(found(tpce::kLastTrade, tpce::last_trade_key(3), ""), "there are 29 of 30 last trades");
  EXPECT_EQ(found(tpce::kHoldingSummary, tpce::holding_key(3, 1, 1),
                  bytes_of(HoldingSummaryRow{kSecurities + 1, 1})),
            "a holding of no security");
  auto trade = row<LastTradeRow>(tpce::kLastTrade, tpce::last_trade_key(3));
  trade.price = tpce::kPriceMax + 1;
  EXPECT_EQ(found(tpce::kLastTrade, tpce::last_trade_key(3), bytes_of(trade)),
            "security 3 has a price that no feed gives");
  const uint64_t number = tpce::trade_number(3, 1, 4);
  EXPECT_NE(found(tpce::kTrade, tpce::trade_key(number), "").find(" trades"), std::string::npos);
  EXPECT_NE(found(tpce::kTradeHistory, tpce::event_key(number, 1), "").find(" events of trades"),
            std::string::npos);
  EXPECT_EQ(found(tpce::kTaxId, tpce::tax_id_key(tpce::tax_id(3)), ""),
            "there are 11 of 12 tax ids");
  EXPECT_EQ(found(tpce::kTaxId, tpce::tax_id_key(tpce::tax_id(3)), bytes_of(tpce::TaxIdRow{4})),
            "a tax id is of another customer");
  EXPECT_EQ(found(tpce::kStatusType, tpce::status_key(2), ""), "there are 4 of 5 statuses");
  EXPECT_EQ(found(tpce::kTradeHistory, tpce::event_key(number, 1),
                  bytes_of(TradeHistoryRow{1, tpce::kActive + 1})),
            "an event of a trade has no status");
  EXPECT_EQ(tpce_.violation(), "");
}

class TpceUnder : public testing::TestWithParam<Protocol> {};

TEST_P(TpceUnder, LoadsRunsAndIsConsistent) {
  TxnOptions options;
  options.protocol = GetParam();
  LoadedWorkload tpce("tpce", "records=5,feeds=50,feed-entries=3", options);
  Random random(11);
  for (int i = 0; i < 60; ++i) tpce.run_to_end(tpce.workload().draw(random));
  EXPECT_GT(tpce.delta(), 0);
  EXPECT_EQ(tpce.violation(), "");
}

INSTANTIATE_TEST_SUITE_P(All, TpceUnder,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const auto& each) { return protocol_name(each.param); });

}  // namespace
}  // namespace rdmacc
