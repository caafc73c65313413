// YCSB's own form, one operation a transaction: which are drawn, what they access and leave, and
// what the check notices of it.
#include <map>
#include <set>

#include "engine/protocols/registry.h"
#include "engine/workloads/number_key.h"
#include "engine/workloads/ycsb.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

constexpr uint64_t kRecords = 100;

TxnInputs inputs_of(Ycsb::Kind kind, uint64_t first, uint64_t second = 0) {
  TxnInputs inputs;
  inputs.kind = kind;
  inputs.add(first);
  if (kind == Ycsb::kScanKind || kind == Ycsb::kReadLatestKind) inputs.add(second);
  return inputs;
}

std::map<uint32_t, uint32_t> kinds_drawn(const std::string& settings, uint32_t draws) {
  auto ycsb = make_workload("ycsb", settings, {2, true});
  CHECK(ycsb.ok());
  Random random(3);
  std::map<uint32_t, uint32_t> kinds;
  for (uint32_t i = 0; i < draws; ++i) {
    const TxnInputs inputs = (*ycsb)->draw(random);
    EXPECT_TRUE((*ycsb)->knows(inputs));
    ++kinds[inputs.kind];
  }
  return kinds;
}

TEST(YcsbMix, IsWhatYcsbCallsWorkloadsAToF) {
  using Shares = std::map<uint32_t, uint32_t>;
  const std::vector<Shares> mixes = {{{Ycsb::kReadKind, 50}, {Ycsb::kUpdateKind, 50}},
                                     {{Ycsb::kReadKind, 95}, {Ycsb::kUpdateKind, 5}},
                                     {{Ycsb::kReadKind, 100}},
                                     {{Ycsb::kReadLatestKind, 95}, {Ycsb::kInsertKind, 5}},
                                     {{Ycsb::kScanKind, 95}, {Ycsb::kInsertKind, 5}},
                                     {{Ycsb::kReadKind, 50}, {Ycsb::kReadModifyWriteKind, 50}}};
  for (size_t mix = 0; mix < mixes.size(); ++mix) {
    auto kinds = kinds_drawn("mix=" + std::to_string(mix + 1), 10'000);
    EXPECT_EQ(kinds.size(), mixes[mix].size());
    for (const auto& [kind, percent] : mixes[mix]) {
      EXPECT_NEAR(kinds[kind], percent * 100, 300) << mix << " " << kind;
    }
  }
}

TEST(YcsbMix, IsOfPercentagesOfOnesOwn) {
  auto kinds = kinds_drawn(
      "reads=10,updates=20,inserts=30,scans=15,read-modify-writes=25,operations=1", 10'000);
  EXPECT_NEAR(kinds[Ycsb::kReadKind], 1'000, 200);
  EXPECT_NEAR(kinds[Ycsb::kUpdateKind], 2'000, 200);
  EXPECT_NEAR(kinds[Ycsb::kInsertKind], 3'000, 200);
  EXPECT_NEAR(kinds[Ycsb::kScanKind], 1'500, 200);
  EXPECT_NEAR(kinds[Ycsb::kReadModifyWriteKind], 2'500, 200);
  EXPECT_EQ(kinds_drawn("", 100).at(Ycsb::kTransactionKind), 100u);
}

TEST(YcsbMix, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const char* settings) {
    return make_workload("ycsb", settings, {2, true}).status().message();
  };
  EXPECT_EQ(refusal("mix=1,reads=10"), "--mix excludes percentages of one's own, and --latest");
  EXPECT_EQ(refusal("mix=4,latest=1"), "--mix excludes percentages of one's own, and --latest");
  EXPECT_EQ(refusal("reads=50,updates=49"), "the percentages of a mix must add up to 100");
  EXPECT_EQ(refusal("updates=100,latest=1"), "--latest needs --reads");
  EXPECT_EQ(refusal("latest=1"), "--latest needs --reads");
  for (const char* other :
       {"operations=3", "writes=50", "reads-per-batch=1", "nodes-per-transaction=1"}) {
    EXPECT_EQ(refusal((std::string("mix=1,") + other).c_str()),
              "a mix has one operation a transaction: it excludes --operations, --writes, "
              "--reads-per-batch and --nodes-per-transaction");
  }
  EXPECT_EQ(refusal("mix=1,records=4"), "");
}

TEST(YcsbMix, KnowsOperationsOnlyWhereTheirTablesAre) {
  auto reads = make_workload("ycsb", "mix=3,records=100", {2, true});
  auto inserts = make_workload("ycsb", "mix=5,records=100,scan-length=20", {2, true});
  ASSERT_TRUE(reads.ok() && inserts.ok());
  EXPECT_EQ((*reads)->table_specs().size(), 1u);
  EXPECT_EQ((*inserts)->table_specs().size(), 2u);
  EXPECT_FALSE((*reads)->knows(inputs_of(Ycsb::kInsertKind, 1)));
  EXPECT_FALSE((*reads)->knows(inputs_of(Ycsb::kReadLatestKind, 1, 1)));
  EXPECT_TRUE((*inserts)->knows(inputs_of(Ycsb::kInsertKind, kYcsbStreams - 1)));
  EXPECT_FALSE((*inserts)->knows(inputs_of(Ycsb::kInsertKind, kYcsbStreams)));
  EXPECT_FALSE((*inserts)->knows(inputs_of(Ycsb::kReadKind, kRecords)));
  EXPECT_FALSE((*inserts)->knows(inputs_of(Ycsb::kScanKind, 1, 21)));
  EXPECT_FALSE((*inserts)->knows(inputs_of(Ycsb::kScanKind, 1, 0)));
  EXPECT_FALSE((*inserts)->knows(TxnInputs()));
}

class YcsbMixTest : public testing::Test {
 protected:
  LoadedWorkload ycsb_{"ycsb",
                       "records=100,reads=40,updates=20,inserts=20,scans=10,"
                       "read-modify-writes=10,latest=1"};

  // The records that a transaction has read, in their order.
  std::set<uint64_t> read_by(const TxnInputs& inputs) {
    ycsb_.run(inputs);
    std::set<uint64_t> records;
    for (const HistoryTransaction& transaction : ycsb_.history().transactions()) {
      for (const HistoryEvent& event : transaction.events) {
        if (event.table == ycsb_.table(0)) records.insert(NumberKey::number_of(event.key));
      }
    }
    return records;
  }
};

TEST_F(YcsbMixTest, NumbersRecordsOnAsTheyAreInserted) {
  for (const uint64_t stream : {3, 3, 60, 3}) {
    EXPECT_EQ(ycsb_.run(inputs_of(Ycsb::kInsertKind, stream)).delta, 1);
  }
  const auto length = [this](uint64_t record) {
    return ycsb_.row(ycsb_.table(0), NumberKey(record)).size();
  };
  for (const uint64_t record : {103, 103 + 64, 103 + 128, 160}) EXPECT_EQ(length(record), 64u);
  EXPECT_EQ(length(102), 0u);
  EXPECT_EQ(ycsb_.violation(), "");
}

TEST_F(YcsbMixTest, ReadsWhatWasInsertedLast) {
  const auto latest = [this](uint64_t stream, uint64_t age) {
    return read_by(inputs_of(Ycsb::kReadLatestKind, stream, age));
  };
  EXPECT_EQ(latest(5, 0), std::set<uint64_t>{94});
  EXPECT_EQ(latest(5, 1), std::set<uint64_t>{30});
  for (int i = 0; i < 2; ++i) ycsb_.run(inputs_of(Ycsb::kInsertKind, 5));
  EXPECT_EQ(latest(5, 0), std::set<uint64_t>{105 + 64});
  EXPECT_EQ(latest(5, 1), std::set<uint64_t>{105});
  EXPECT_EQ(latest(5, 2), std::set<uint64_t>{94});
  EXPECT_EQ(latest(6, 0), std::set<uint64_t>{93});
}

TEST_F(YcsbMixTest, ScansARangeOfNumbers) {
  ycsb_.run(inputs_of(Ycsb::kInsertKind, 2));
  EXPECT_EQ(read_by(inputs_of(Ycsb::kScanKind, 95, 10)).size(), 10u);
  EXPECT_EQ(read_by(inputs_of(Ycsb::kScanKind, 10, 2)), (std::set<uint64_t>{10, 11}));
  ycsb_.in_transaction([&](Session& session) {
    CHECK(session.remove(ycsb_.table(0), NumberKey(12)).ok());
    TxnEffect effect;
    EXPECT_EQ(
        ycsb_.workload().execute(session, inputs_of(Ycsb::kScanKind, 11, 2), effect).message(),
        "record 12 is missing");
    return Status();
  });
}

TEST_F(YcsbMixTest, CountsInsertsAndBothKindsOfUpdates) {
  for (const Ycsb::Kind kind : {Ycsb::kUpdateKind, Ycsb::kReadModifyWriteKind}) {
    EXPECT_EQ(ycsb_.run(inputs_of(kind, 7)).delta, 1);
  }
  uint64_t updates = 0;
  const std::string row = ycsb_.row(ycsb_.table(0), NumberKey(7));
  ASSERT_EQ(row.size(), 64u);
  std::memcpy(&updates, row.data(), sizeof(updates));
  EXPECT_EQ(updates, 2u);
  ycsb_.run(inputs_of(Ycsb::kInsertKind, 9));
  EXPECT_EQ(ycsb_.violation(), "");
  EXPECT_EQ(ycsb_.violation(1), "the records count 3 updates, but 4 were committed");
}

TEST_F(YcsbMixTest, NoticesRecordsThatAreLostOrOfNoInsert) {
  ycsb_.run(inputs_of(Ycsb::kInsertKind, 9));
  const std::string good = ycsb_.row(ycsb_.table(0), NumberKey(109));
  ycsb_.overwrite(ycsb_.table(0), NumberKey(109), "");
  EXPECT_EQ(ycsb_.violation(), "the scan found 100 of 101 records");
  ycsb_.overwrite(ycsb_.table(0), NumberKey(109), good);
  EXPECT_EQ(ycsb_.violation(), "");
  std::string stray(64, '\0');
  Ycsb::write_record(110, 0, 64, stray.data());
  ycsb_.overwrite(ycsb_.table(0), NumberKey(110), stray);
  EXPECT_EQ(ycsb_.violation(), "there is a record 110");
}

class YcsbMixUnder : public testing::TestWithParam<Protocol> {};

TEST_P(YcsbMixUnder, EveryMixLosesNothing) {
  for (int mix = 1; mix <= 6; ++mix) {
    TxnOptions options;
    options.protocol = GetParam();
    LoadedWorkload ycsb("ycsb", "records=60,scan-length=20,mix=" + std::to_string(mix), options);
    Random random(11);
    for (int i = 0; i < 60; ++i) ycsb.run_to_end(ycsb.workload().draw(random));
    EXPECT_EQ(ycsb.delta() == 0, mix == 3);
    EXPECT_EQ(ycsb.violation(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, YcsbMixUnder,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const auto& each) { return protocol_name(each.param); });

}  // namespace
}  // namespace rdmacc
