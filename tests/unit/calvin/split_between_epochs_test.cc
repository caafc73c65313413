// The owner splits groups between two epochs of the order only, for loaders that wait for splits,
// too: the stamp of a split is later than those of an epoch that is sealed, and a gap header's
// stamp never goes back.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/storage/layout/hash_index.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

constexpr int kLoaders = 3, kLoads = 12;
constexpr int kRows = 100;  // of each load: as many as make a loader wait for pending splits
constexpr int kTriesMax = 200;

class SplitBetweenEpochsTest : public testing::Test {
 protected:
  SplitBetweenEpochsTest() : engine_(7) {
    engine_.fabric().set_rewriter(
        [this](WorkerId, NodeId node, std::vector<Verb>& verbs) { watch_stamps(node, verbs); });
  }
  void watch_stamps(NodeId node, const std::vector<Verb>& verbs) {
    const std::byte* region = engine_.node(node).worker().endpoint().local_region();
    for (const Verb& verb : verbs) {
      if (verb.opcode != Opcode::kWrite || verb.bytes != sizeof(uint64_t)) continue;
      if (verb.remote_offset % sizeof(Header) != kOffsetOfWts) continue;
      Header before;
      std::memcpy(&before, region + verb.remote_offset - kOffsetOfWts, sizeof(before));
      if ((before.flags & kFlagGap) == 0 || before.table != table_) continue;
      uint64_t stamp = 0;
      std::memcpy(&stamp, verb.local, sizeof(stamp));
      stamps_++;
      if (stamp < before.wts) went_back_++;
    }
  }
  Status load(Session& session, const std::string& name) {
    TxnOptions options;
    options.protocol = Protocol::kCalvin;
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    for (int row = 0; row < kRows; row++) {
      const std::string key = name + " " + std::to_string(row);
      RDMACC_RETURN_IF_ERROR(session.insert_unchecked(table_, key, "row"));
    }
    return session.commit();
  }
  void load_often(Session& session, int loader) {
    for (int i = 0; i < kLoads; i++) {
      Status status;
      for (int tries = 0; tries < kTriesMax; tries++) {
        status = load(session, std::to_string(loader) + "." + std::to_string(i));
        if (status.ok()) break;
        session.abort();
      }
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }

  SimEngine engine_;
  TableId table_ = kNoTable;
  uint64_t stamps_ = 0, went_back_ = 0;
};

TEST_F(SplitBetweenEpochsTest, StampsOfGapHeadersNeverGoBack) {
  std::vector<Coordinator*> coordinators;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < kLoaders; i++) {
    coordinators.push_back(&engine_.add_coordinator());
    sessions.push_back(std::make_unique<Session>(*coordinators.back()));
  }
  engine_.run(*coordinators[0], [&] {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 64;
    auto created = sessions[0]->create_table(spec);
    ASSERT_TRUE(created.ok());
    table_ = created->id;
  });
  int ended = 0;
  for (int i = 0; i < kLoaders; i++) {
    ASSERT_TRUE(coordinators[i]->worker().scheduler().spawn([&, i] {
      load_often(*sessions[i], i);
      ended++;
    }));
  }
  ASSERT_TRUE(engine_.run_until([&] { return ended == kLoaders; }));
  EXPECT_GT(engine_.node(0).storage()->statistics().splits, 10u);
  EXPECT_GT(stamps_, 100u);
  EXPECT_EQ(went_back_, 0u);
}

}  // namespace
}  // namespace rdmacc
