// A commit by RPC that is too large for one request, of which a node loses the first: an entry
// shows others a record, and tells splits where it belongs, so it is placed behind the record.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "engine/storage/layout/hash_index.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

constexpr int kRows = 200;  // more than go into one request together with their entries
constexpr ptrdiff_t kWritesOfInstall = 10;

class PartedCommit : public testing::TestWithParam<Protocol> {
 protected:
  PartedCommit() : engine_(11), coordinator_(engine_.add_coordinator()) {
    engine_.run(coordinator_, [this] {
      Session session(coordinator_);
      TableSpec spec;
      spec.history = 2;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok());
      table_ = table->id;
    });
    engine_.fabric().set_rewriter([this](WorkerId by, NodeId node, std::vector<Verb>& verbs) {
      if (!armed_) return;
      for (const Verb& verb : verbs) look_at(node, verb);
      const auto writes = std::count_if(verbs.begin(), verbs.end(), [](const Verb& verb) {
        return verb.opcode == Opcode::kWrite;
      });
      if (again_ == nullptr && by == 0 && node == 0 && writes >= kWritesOfInstall) dies_ = true;
    });
    engine_.fabric().set_observer([this](uint64_t) {
      if (dies_) restart();
    });
  }
  ~PartedCommit() override {
    engine_.fabric().set_observer(nullptr);
    engine_.fabric().attach(0, nullptr);
  }

  // Node 0 dies with its first part, and is back before the second comes.
  void restart() {
    dies_ = false;
    region_ = engine_.node(0).worker().endpoint().local_region();
    engine_.fabric().kill(0);
    engine_.fabric().attach(0, nullptr);
    auto opened = NodeThread::open(engine_.fabric(), 0, 0, NodeOptions{});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    again_ = std::move(*opened);
    engine_.fabric().attach(0, &again_->worker().scheduler());
  }

  // Is it an entry of a slot that is no row yet, and that no earlier verb makes one?
  void look_at(NodeId node, const Verb& verb) {
    if (node != 0 || again_ == nullptr || verb.opcode != Opcode::kWrite || verb.bytes != 8) return;
    rows_.insert(verb.remote_offset - kOffsetOfLength);
    uint64_t word = 0;
    std::memcpy(&word, verb.local, sizeof(word));
    const uint64_t slot = entry_offset(word);
    if (entry_tag(word) == 0 || slot % 64 != 0 || slot + sizeof(Header) > (192ull << 20)) return;
    Header header;
    std::memcpy(&header, region_ + slot, sizeof(header));
    const bool row = (header.flags & (kFlagLive | kFlagGap)) != 0 || rows_.contains(slot);
    if (header.table == table_ && !row) ++early_;
  }

  SimEngine engine_;
  Coordinator& coordinator_;
  TableId table_ = kNoTable;
  std::unique_ptr<NodeThread> again_;
  std::byte* region_ = nullptr;
  std::set<uint64_t> rows_;  // slots whose lengths were written
  bool armed_ = false, dies_ = false;
  int early_ = 0;
};

TEST_P(PartedCommit, PlacesNoEntryBeforeItsRecord) {
  TxnOptions options;
  options.protocol = GetParam();
  options.plan = StagePlan(0);  // all stages by RPC
  engine_.run(coordinator_, [&] {
    Session session(coordinator_);
    ASSERT_TRUE(session.begin(options).ok());
    for (int i = 0; i < kRows; i++) {
      ASSERT_TRUE(session.insert_unchecked(table_, "k" + std::to_string(i), "row").ok());
    }
    armed_ = true;
    const Status status = session.commit();
    armed_ = false;
    ASSERT_TRUE(status.ok()) << status.to_string();
  });
  EXPECT_NE(again_, nullptr);
  EXPECT_EQ(early_, 0);
}

INSTANTIATE_TEST_SUITE_P(Protocols, PartedCommit,
                         testing::Values(Protocol::kNowait, Protocol::kOcc, Protocol::kDrtm,
                                         Protocol::kMvcc, Protocol::kSundial, Protocol::kTictoc,
                                         Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada),
                         [](const auto& each) { return std::string(protocol_name(each.param)); });

}  // namespace
}  // namespace rdmacc
