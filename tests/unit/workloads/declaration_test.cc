// Transactions touch no key that they did not declare, and use it as they declared.
#include <map>

#include "engine/workloads/tpcc.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

using Place = std::pair<TableId, std::string>;

struct Declared {
  std::map<Place, KeyUse> uses;
  bool derived_inserts = false;
};

Declared declared_by(const KeyDeclaration& keys) {
  Declared declared;
  declared.derived_inserts = keys.derived_inserts;
  for (const DeclaredKey& key : keys.keys) {
    const bool fresh =
        declared.uses.try_emplace({key.table, std::string(key.key())}, key.use).second;
    EXPECT_TRUE(fresh) << "a key is declared twice";
  }
  return declared;
}

void expect_declared(const Declared& declared, const HistoryEvent& event) {
  const auto found = declared.uses.find({event.table, event.key});
  if (found == declared.uses.end()) {
    EXPECT_TRUE(event.op == HistoryOp::kInsert && declared.derived_inserts)
        << static_cast<char>(event.op) << " of " << printable_key(event.key);
    return;
  }
  const KeyUse use = found->second;
  if (event.op == HistoryOp::kWrite || event.op == HistoryOp::kDelete) {
    EXPECT_EQ(use, KeyUse::kWrite);
  }
  if (event.op == HistoryOp::kInsert) {
    EXPECT_NE(use, KeyUse::kRead);
  }
}

enum class Ask { kInputs, kInputsAndRows };

// Runs so many drawn transactions; gives how many were declared, by their inputs alone or after a
// survey of rows.
uint32_t compare(LoadedWorkload& loaded, uint32_t transactions, Ask ask = Ask::kInputs) {
  Random random(11);
  uint32_t known = 0;
  uint64_t touched = 0;
  for (uint32_t t = 0; t < transactions; ++t) {
    const TxnInputs inputs = loaded.workload().draw(random);
    KeyDeclaration keys;
    if (!loaded.workload().declare(inputs, keys)) {
      EXPECT_TRUE(keys.keys.empty());
      if (ask == Ask::kInputs || !loaded.survey(inputs, keys)) continue;
    }
    ++known;
    const Declared declared = declared_by(keys);
    loaded.run(inputs);
    EXPECT_LE(loaded.history().transactions().size(), 1u);
    for (const HistoryTransaction& transaction : loaded.history().transactions()) {
      touched += transaction.events.size();
      for (const HistoryEvent& event : transaction.events) expect_declared(declared, event);
    }
  }
  EXPECT_EQ(touched > 0, known > 0);
  return known;
}

// More than `least` of those that are drawn, but not all.
void compare_some(const char* workload, const char* settings, uint32_t transactions,
                  uint32_t least) {
  LoadedWorkload loaded(workload, settings);
  const uint32_t known = compare(loaded, transactions);
  EXPECT_GT(known, least) << workload << ", " << settings;
  EXPECT_LT(known, transactions) << workload << ", " << settings;
}

TEST(KeyDeclaration, CoversSmallbank) {
  LoadedWorkload loaded("smallbank", "records=20");
  EXPECT_EQ(compare(loaded, 60), 60u);
}

TEST(KeyDeclaration, CoversYcsb) {
  LoadedWorkload loaded("ycsb", "records=50,writes=40");
  EXPECT_EQ(compare(loaded, 20), 20u);
}

TEST(KeyDeclaration, CoversYcsbsMixes) {
  for (const char* mix : {"mix=1", "mix=2", "mix=3", "mix=6", "inserts=100"}) {
    LoadedWorkload loaded("ycsb", std::string("records=50,") + mix);
    EXPECT_EQ(compare(loaded, 20), 20u) << mix;
  }
  // What looks for records that inserts may add is not known before.
  compare_some("ycsb", "records=50,reads=60,inserts=40,latest=1", 40, 5);
  compare_some("ycsb", "records=50,scan-length=30,scans=100", 40, 5);
}

TEST(KeyDeclaration, CoversTatpButForTelephoneNumbers) {
  compare_some("tatp", "records=20", 100, 60);
}

TEST(KeyDeclaration, CoversTpcesMarketFeeds) { compare_some("tpce", "records=5,feeds=60", 40, 10); }

TEST(KeyDeclaration, CoversWhatASurveyHasFound) {
  LoadedWorkload tatp("tatp", "records=20");
  EXPECT_EQ(compare(tatp, 40, Ask::kInputsAndRows), 40u);
  LoadedWorkload tpce("tpce", "records=5,feeds=10,trades=12");
  EXPECT_EQ(compare(tpce, 40, Ask::kInputsAndRows), 40u);
}

TEST(KeyDeclaration, CoversTpccButForPaymentsByLastName) {
  compare_some("tpcc", "warehouses=2,items=100,customers=20,rollbacks=20", 60, 30);
}

TEST(KeyDeclaration, CoversNewOrdersOfTheFullMix) {
  compare_some("tpcc", "items=100,customers=20,full-mix=1,by-last-name=0", 60, 40);
}

TEST(KeyDeclaration, CoversMixedUnlessItScans) {
  compare_some("mixed", "scans=30", 60, 10);
  LoadedWorkload loaded("mixed", "scans=0");
  EXPECT_EQ(compare(loaded, 60), 60u);
}

TEST(KeyDeclaration, IsNotThereForPredicate) {
  LoadedWorkload loaded("predicate", "");
  EXPECT_EQ(compare(loaded, 5), 0u);
}

// Another process knows the tables by their ids alone.
TEST(BoundTables, DoWhatTheCreatorsDo) {
  LoadedWorkload loaded("ycsb", "records=50,nodes-per-transaction=0");
  auto other = make_workload("ycsb", "records=50", {LoadedWorkload::kNodes, true});
  ASSERT_TRUE(other.ok());
  (*other)->bind_tables(loaded.workload().tables());
  Random random(2), same(2);
  for (int i = 0; i < 20; ++i) {
    const TxnInputs inputs = loaded.workload().draw(random);
    EXPECT_EQ((*other)->draw(same).values, inputs.values);
    KeyDeclaration keys, others;
    ASSERT_TRUE(loaded.workload().declare(inputs, keys) && (*other)->declare(inputs, others));
    ASSERT_EQ(keys.keys.size(), others.keys.size());
    EXPECT_EQ(keys.keys[0].table, others.keys[0].table);
  }
}

}  // namespace
}  // namespace rdmacc
