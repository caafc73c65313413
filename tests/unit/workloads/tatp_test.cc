// TATP: what is loaded, what its transactions answer and leave, and what its check notices.
#include "engine/workloads/tatp.h"

#include <map>

#include "engine/protocols/registry.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

using tatp::CallForwardingRow;
using tatp::forwarding_key;
using tatp::kCallForwarding;
using tatp::kSpecialFacility;
using tatp::SpecialFacilityRow;
using tatp::subscriber_key;
using tatp::SubscriberRow;
using tatp::typed_key;

constexpr uint64_t kSubscribers = 40;

TxnInputs inputs_of(Tatp::Kind kind, uint64_t subscriber, uint64_t type, uint64_t start = 0,
                    uint64_t end = 0, uint64_t number = 0) {
  TxnInputs inputs;
  inputs.kind = kind;
  for (const uint64_t value : {subscriber, type, start, end, number}) inputs.add(value);
  return inputs;
}

class TatpTest : public testing::Test {
 protected:
  LoadedWorkload tatp_{"tatp", "records=40"};

  template <typename Row>
  Row row(tatp::Table table, std::string_view key) {
    const std::string bytes = tatp_.row(tatp_.table(table), key);
    Row row;
    EXPECT_EQ(bytes.size(), sizeof(Row));
    if (bytes.size() == sizeof(Row)) std::memcpy(&row, bytes.data(), sizeof(Row));
    return row;
  }
  bool is_there(tatp::Table table, const NumberKey& key) {
    return !tatp_.row(tatp_.table(table), key).empty();
  }
  // A facility that is there, or not, and its key.
  std::pair<uint64_t, uint64_t> facility(bool there) {
    for (uint64_t s = 1; s <= kSubscribers; ++s) {
      for (uint64_t type = 1; type <= tatp::kTypes; ++type) {
        if (is_there(kSpecialFacility, typed_key(s, type)) == there) return {s, type};
      }
    }
    ADD_FAILURE() << "all facilities are alike";
    return {1, 1};
  }
  tatp::Digits destination(const TxnInputs& inputs) {
    tatp::Digits target;
    tatp_.in_transaction([&](Session& session) {
      return dynamic_cast<const Tatp&>(tatp_.workload())
          .get_new_destination(session, inputs, target);
    });
    return target;
  }
  void put_forwarding(uint64_t s, uint64_t type, uint64_t start, uint8_t end, uint64_t target) {
    const CallForwardingRow row{end, tatp::digits_of(target)};
    tatp_.overwrite(tatp_.table(kCallForwarding), forwarding_key(s, type, start), bytes_of(row));
  }
};

TEST_F(TatpTest, LoadsEachSubscriberWithOneToFourOfEverything) {
  std::map<uint64_t, uint32_t> accesses, facilities, forwardings;
  const auto count = [this](tatp::Table table, std::map<uint64_t, uint32_t>& by, uint32_t bits) {
    tatp_.for_each(tatp_.table(table),
                   [&](const RowView& view) { ++by[NumberKey::number_of(view.key) >> bits]; });
  };
  count(tatp::kAccessInfo, accesses, 8);
  count(kSpecialFacility, facilities, 8);
  count(kCallForwarding, forwardings, 16);
  std::map<uint32_t, uint32_t> how_many;
  for (uint64_t s = 1; s <= kSubscribers; ++s) {
    EXPECT_TRUE(accesses[s] >= 1 && accesses[s] <= 4) << s;
    EXPECT_TRUE(facilities[s] >= 1 && facilities[s] <= 4) << s;
    EXPECT_EQ(forwardings[s], tatp::loaded_forwardings(s)) << s;
    ++how_many[accesses[s]];
  }
  EXPECT_EQ(how_many.size(), 4u);
  EXPECT_EQ(tatp_.violation(), "");
}

TEST(TatpDraw, IsTheStandardMixOfWhatItKnows) {
  auto made = make_workload("tatp", "", {2, true});
  ASSERT_TRUE(made.ok());
  Random random(3);
  std::map<uint32_t, uint32_t> kinds;
  for (int i = 0; i < 20'000; ++i) {
    const TxnInputs inputs = (*made)->draw(random);
    EXPECT_TRUE((*made)->knows(inputs));
    ++kinds[inputs.kind];
  }
  constexpr std::array<uint32_t, 7> kPercent{35, 10, 35, 2, 14, 2, 2};
  for (uint32_t kind = 0; kind < kPercent.size(); ++kind) {
    EXPECT_NEAR(kinds[kind], kPercent[kind] * 200, 300) << kind;
  }
  EXPECT_FALSE((*made)->knows(inputs_of(Tatp::kGetSubscriberData, 0, 1)));
  EXPECT_FALSE((*made)->knows(inputs_of(Tatp::kGetSubscriberData, 100'001, 1)));
  EXPECT_FALSE((*made)->knows(inputs_of(Tatp::kGetAccessData, 1, 5)));
  EXPECT_FALSE((*made)->knows(inputs_of(Tatp::kDeleteCallForwarding, 1, 1, 24)));
}

TEST_F(TatpTest, FindsWhereACallGoes) {
  const auto [s, type] = facility(true);
  auto row_of_it = row<SpecialFacilityRow>(kSpecialFacility, typed_key(s, type));
  for (const uint64_t start : {0, 8, 16}) {
    tatp_.overwrite(tatp_.table(kCallForwarding), forwarding_key(s, type, start), "");
  }
  put_forwarding(s, type, 0, 5, 7);
  put_forwarding(s, type, 8, 15, 9);
  row_of_it.is_active = 1;
  tatp_.overwrite(tatp_.table(kSpecialFacility), typed_key(s, type), bytes_of(row_of_it));
  EXPECT_EQ(destination(inputs_of(Tatp::kGetNewDestination, s, type, 0, 4)), tatp::digits_of(7));
  EXPECT_EQ(destination(inputs_of(Tatp::kGetNewDestination, s, type, 0, 5)), tatp::Digits());
  EXPECT_EQ(destination(inputs_of(Tatp::kGetNewDestination, s, type, 16, 14)), tatp::digits_of(9));
  EXPECT_EQ(destination(inputs_of(Tatp::kGetNewDestination, s, type, 0, 14)), tatp::Digits());
  row_of_it.is_active = 0;
  tatp_.overwrite(tatp_.table(kSpecialFacility), typed_key(s, type), bytes_of(row_of_it));
  EXPECT_EQ(destination(inputs_of(Tatp::kGetNewDestination, s, type, 0, 4)), tatp::Digits());
}

TEST_F(TatpTest, UpdatesASubscriberAndTheFacilityOrNeither) {
  const auto [s, type] = facility(true);
  tatp_.run(inputs_of(Tatp::kUpdateSubscriberData, s, type, 0, 0, 0x1C8));
  EXPECT_EQ(row<SubscriberRow>(tatp::kSubscriber, subscriber_key(s)).bits[0], 1);
  EXPECT_EQ(row<SpecialFacilityRow>(kSpecialFacility, typed_key(s, type)).data_a, 0xC8);
  tatp_.run(inputs_of(Tatp::kUpdateSubscriberData, s, type, 0, 0, 0x0C9));
  EXPECT_EQ(row<SubscriberRow>(tatp::kSubscriber, subscriber_key(s)).bits[0], 0);
  const auto [other, missing] = facility(false);
  const auto before = row<SubscriberRow>(tatp::kSubscriber, subscriber_key(other));
  tatp_.run(
      inputs_of(Tatp::kUpdateSubscriberData, other, missing, 0, 0, before.bits[0] == 0 ? 256 : 0));
  EXPECT_EQ(row<SubscriberRow>(tatp::kSubscriber, subscriber_key(other)).bits, before.bits);
  tatp_.run(inputs_of(Tatp::kUpdateLocation, s, 1, 0, 0, 123'456));
  EXPECT_EQ(row<SubscriberRow>(tatp::kSubscriber, subscriber_key(s)).vlr_location, 123'456u);
  EXPECT_EQ(tatp_.violation(), "");
}

TEST_F(TatpTest, InsertsAndDeletesAForwardingOnce) {
  const auto [s, type] = facility(true);
  const NumberKey key = forwarding_key(s, type, 8);
  const TxnInputs insert = inputs_of(Tatp::kInsertCallForwarding, s, type, 8, 12, 3);
  const TxnInputs remove = inputs_of(Tatp::kDeleteCallForwarding, s, type, 8);
  tatp_.run(remove);
  EXPECT_FALSE(is_there(kCallForwarding, key));
  EXPECT_EQ(tatp_.run(remove).delta, 0);
  EXPECT_EQ(tatp_.run(insert).delta, 1);
  EXPECT_EQ(row<CallForwardingRow>(kCallForwarding, key).end, 12);
  EXPECT_EQ(row<CallForwardingRow>(kCallForwarding, key).target, tatp::digits_of(3));
  EXPECT_EQ(tatp_.run(insert).delta, 0);
  EXPECT_EQ(tatp_.violation(), "");
  EXPECT_EQ(tatp_.run(remove).delta, -1);
  const auto [other, missing] = facility(false);
  const TxnInputs refused = inputs_of(Tatp::kInsertCallForwarding, other, missing, 8, 12, 3);
  EXPECT_EQ(tatp_.run(refused).delta, 0);
  EXPECT_FALSE(is_there(kCallForwarding, forwarding_key(other, missing, 8)));
  EXPECT_EQ(tatp_.violation(), "");
}

TEST_F(TatpTest, ItsCheckNoticesRowsThatReferToNone) {
  const auto [s, type] = facility(false);
  const auto [owner, facility_type] = facility(true);
  const std::string of = " of subscriber " + std::to_string(owner);
  const TableId forwardings = tatp_.table(kCallForwarding);
  const NumberKey there = forwarding_key(owner, facility_type, 16);
  const std::string good = tatp_.row(forwardings, there);
  const auto found = [&](const NumberKey& key, const CallForwardingRow& row) {
    const std::string before = tatp_.row(forwardings, key);
    tatp_.overwrite(forwardings, key, bytes_of(row));
    std::string wrong = tatp_.violation();
    tatp_.overwrite(forwardings, key, before);
    return wrong;
  };
  const tatp::Digits target = tatp::digits_of(2);
  EXPECT_EQ(found(forwarding_key(s, type, 0), {5, target}),
            "a forwarding of no facility of subscriber " + std::to_string(s));
  EXPECT_EQ(found(there, {16, target}), "a forwarding at no hours" + of);
  EXPECT_EQ(found(there, {20, tatp::digits_of(kSubscribers + 1)}),
            "a call is forwarded to 000000000000041" + of);
  for (const auto& [table, key, violation] :
       std::vector<std::tuple<tatp::Table, NumberKey, std::string>>{
           {tatp::kAccessInfo, typed_key(kSubscribers + 1, 1), "access of no subscriber"},
           {tatp::kAccessInfo, typed_key(1, 5), "access of no type"}}) {
    tatp_.overwrite(tatp_.table(table), key, bytes_of(tatp::AccessInfoRow()));
    EXPECT_EQ(tatp_.violation(), violation);
    tatp_.overwrite(tatp_.table(table), key, "");
  }
  SubscriberRow subscriber = row<SubscriberRow>(tatp::kSubscriber, subscriber_key(9));
  const std::string before(bytes_of(subscriber));
  subscriber.number = tatp::digits_of(8);
  tatp_.overwrite(tatp_.table(tatp::kSubscriber), subscriber_key(9), bytes_of(subscriber));
  EXPECT_EQ(tatp_.violation(), "subscriber 9 has another's number");
  tatp_.overwrite(tatp_.table(tatp::kSubscriber), subscriber_key(9), "");
  EXPECT_EQ(tatp_.violation(), "there are 39 subscribers and 40 numbers, but 40 were loaded");
  tatp_.overwrite(tatp_.table(tatp::kSubscriber), subscriber_key(9), before);
  EXPECT_EQ(tatp_.violation(), "");
  EXPECT_NE(tatp_.violation(1).find(" were loaded and 1 inserted less those deleted"),
            std::string::npos);
}

class TatpUnder : public testing::TestWithParam<Protocol> {};

TEST_P(TatpUnder, LoadsRunsAndIsConsistent) {
  TxnOptions options;
  options.protocol = GetParam();
  LoadedWorkload tatp("tatp", "records=30", options);
  Random random(11);
  for (int i = 0; i < 300; ++i) tatp.run_to_end(tatp.workload().draw(random));
  EXPECT_NE(tatp.delta(), 0);
  EXPECT_EQ(tatp.violation(), "");
}

INSTANTIATE_TEST_SUITE_P(All, TatpUnder,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const auto& each) { return protocol_name(each.param); });

}  // namespace
}  // namespace rdmacc
