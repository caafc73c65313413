// Scans by slots, as these lie in memory: each row once, wherever nodes have put it, and nothing
// else that looks like one.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/cluster/partition_map.h"
#include "engine/storage/layout/page_word.h"
#include "engine/storage/layout/region_layout.h"
#include "tests/fabric/forwarding_endpoint.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

// Calls back before each chain of verbs to a node.
class WatchedEndpoint : public ForwardingEndpoint {
 public:
  using Watch = std::function<void(std::span<const Verb>)>;
  WatchedEndpoint(std::unique_ptr<Endpoint> inner, const Watch& watch)
      : ForwardingEndpoint(std::move(inner)), watch_(watch) {}
  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override {
    if (watch_) watch_(chain);
    ForwardingEndpoint::ring(node, chain, completion);
  }

 private:
  const Watch& watch_;
};

constexpr uint32_t kAnyNumber = UINT32_MAX;  // of slots for each row

Topology one_node() {
  constexpr uint64_t kPages = 24;
  Topology topology;
  topology.nodes = 1;
  topology.workers_max = 16;
  topology.region_bytes = region_bytes_min(topology) + kPages * kPageBytes;
  return topology;
}

class SlotScanTest : public testing::Test {
 protected:
  SlotScanTest()
      : engine_(5, 0, 1, one_node().region_bytes, /*one_by_one=*/true), layout_(one_node()) {
    engine_.options().reserved_slots_max = 0;  // they count as rows
    begin_with({0, kAnyNumber});
  }
  // A coordinator whose scans go by slots within these limits.
  void begin_with(SlotScanLimits limits) {
    engine_.options().slot_scans = limits;
    here_ = &engine_.add_coordinator([this](std::unique_ptr<Endpoint> endpoint) {
      return std::make_unique<WatchedEndpoint>(std::move(endpoint), watch_);
    });
    one_ = std::make_unique<Session>(*here_);
  }
  template <typename Task>
  void as_one(const Task& task) {
    engine_.run(*here_, task);
  }
  TableId make_table(uint32_t number, uint32_t record_size) {
    TableSpec spec;
    spec.relfilenode = number;
    spec.record_size = record_size;
    auto table = one_->create_table(spec);
    CHECK(table.ok());
    return table->id;
  }
  static TxnOptions options() { return {.protocol = Protocol::kOcc, .plan = StagePlan(511)}; }
  // So many rows "<from>" and so on; false: there is no memory left.
  bool insert(TableId table, int from, int rows, size_t row_bytes) {
    CHECK(one_->begin(options()).ok());
    Status status;
    for (int i = 0; i < rows && status.ok(); i++) {
      status = one_->insert(table, std::to_string(from + i), std::string(row_bytes, 'r'));
    }
    if (status.ok()) status = one_->commit();
    one_->abort();
    return status.ok();
  }
  // How often a scan returns each key, or what ends it.
  std::map<std::string, int> scan(Session& session, TableId table, Status& status,
                                  uint64_t* shared_walk = nullptr) {
    std::map<std::string, int> found;
    auto cursor = session.scan(table, kEveryCommand, ScanMode::kSerializable, {}, shared_walk);
    status = cursor.status();
    std::vector<RowView> batch;
    while (status.ok()) {
      status = session.scan_next(**cursor, batch);
      if (batch.empty()) break;
      for (const RowView& row : batch) found[std::string(row.key)]++;
    }
    return found;
  }
  uint64_t* word_at(uint64_t offset) {
    std::byte* region = engine_.node(0).worker().endpoint().local_region();
    return reinterpret_cast<uint64_t*>(region + offset);
  }
  // The word of the page that the verb goes to; nullptr: it goes to none.
  uint64_t* page_word_of(const Verb& verb) {
    if (verb.remote_offset < layout_.page(0)) return nullptr;
    return word_at(layout_.page_word((verb.remote_offset - layout_.page(0)) / kPageBytes));
  }
  static bool is_of_slots(uint64_t word) { return PageWord{word}.kind() == PageKind::kSlot; }

  SimEngine engine_;
  const RegionLayout layout_;
  WatchedEndpoint::Watch watch_;
  Coordinator* here_ = nullptr;
  std::unique_ptr<Session> one_;
};

TEST_F(SlotScanTest, GetsEachRowOnceBehindGroupsThatItHasScanned) {
  constexpr int kRows = 1500;
  uint32_t tables = 0;
  for (const uint32_t rows_min : {0u, 200u, 1400u, UINT32_MAX}) {
    begin_with({rows_min, kAnyNumber});
    as_one([&] {
      const TableId table = make_table(++tables, 40);
      ASSERT_TRUE(insert(table, 0, kRows, 20));
      Status status = one_->begin(options());
      const auto found = scan(*one_, table, status);
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(found.size(), size_t{kRows}) << rows_min;
      for (const auto& [key, times] : found) EXPECT_EQ(times, 1) << key << ", " << rows_min;
      EXPECT_TRUE(one_->commit().ok());
    });
  }
}

TEST_F(SlotScanTest, GetsRowsThatAreInPagesOfLargerSlots) {
  constexpr int kLoad = 60;
  as_one([&] {
    const TableId large = make_table(1, 512), small = make_table(2, 40);
    int rows = 0;
    while (insert(large, rows, kLoad, 400)) rows += kLoad;
    ASSERT_GT(rows, 1000);
    // Each page keeps a row, so that it serves its size.
    for (int i = 0; i < rows; i++) {
      if (i % 16 == 0) continue;
      ASSERT_TRUE(one_->begin(options()).ok());
      ASSERT_TRUE(one_->remove(large, std::to_string(i)).ok());
      ASSERT_TRUE(one_->commit().ok());
    }
    here_->worker().scheduler().sleep_for(3'000'000);
    ASSERT_EQ(*word_at(offsetof(Superblock, slots_in_larger)), 0u);
    int small_rows = 0;
    while (small_rows < 20 * kLoad && insert(small, small_rows, kLoad, 20)) small_rows += kLoad;
    ASSERT_EQ(*word_at(offsetof(Superblock, slots_in_larger)), 1u) << small_rows;
    Status status = one_->begin(options());
    EXPECT_EQ(scan(*one_, small, status).size(), static_cast<size_t>(small_rows));
    EXPECT_EQ(scan(*one_, large, status).size(), static_cast<size_t>((rows + 15) / 16));
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(one_->commit().ok());
  });
}

TEST(SlotScanOfNodes, GoesOnWhereTheFirstNodeHasNoRow) {
  SimEngine engine(5, 0, 3, 192ull << 20, /*one_by_one=*/true);
  engine.options().slot_scans = {0, kAnyNumber};
  Coordinator& here = engine.add_coordinator();
  Session session(here);
  engine.run(here, [&] {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 40;
    auto table = session.create_table(spec);
    ASSERT_TRUE(table.ok());
    const TxnOptions options{.protocol = Protocol::kOcc, .plan = StagePlan(511)};
    int rows = 0;
    for (int i = 0; rows < 5; i++) {
      const std::string key = std::to_string(i);
      if (PartitionMap(3, 0).primary_of(hash_key(table->id, key)) == 0) continue;
      ASSERT_TRUE(session.begin(options).ok());
      ASSERT_TRUE(session.insert(table->id, key, "r").ok());
      ASSERT_TRUE(session.commit().ok());
      rows++;
    }
    ASSERT_TRUE(session.begin(options).ok());
    auto cursor = session.scan(table->id);
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    size_t found = 0;
    do {
      ASSERT_TRUE(session.scan_next(**cursor, batch).ok());
      found += batch.size();
    } while (!batch.empty());
    EXPECT_EQ(found, 5u);
    ASSERT_TRUE(session.commit().ok());
  });
}

// Before a block of slots is read, or in the midst of it. So few rows are read by slots from the
// first one on.
TEST_F(SlotScanTest, TakesNothingFromAPageThatHasBecomeSomethingElse) {
  constexpr int kRows = 12;
  for (const uint64_t when : {1, 30}) {
    TableId table = kNoTable;
    as_one([&] {
      table = make_table(static_cast<uint32_t>(when), 40);
      ASSERT_TRUE(insert(table, 0, kRows, 20));
      Status status = one_->begin(options());
      EXPECT_EQ(scan(*one_, table, status).size(), size_t{kRows});
      EXPECT_TRUE(one_->commit().ok());
    });
    uint64_t looks = 0, word = 0;
    uint64_t* changed = nullptr;
    watch_ = [&](std::span<const Verb> chain) {
      for (const Verb& verb : chain) {
        uint64_t* const page = page_word_of(verb);
        if (page == nullptr || !is_of_slots(*page) || ++looks != when) continue;
        changed = page;
        word = std::exchange(*page, PageWord::make(PageKind::kOverflow, 128).bits);
      }
    };
    as_one([&] {
      Status status = one_->begin(options());
      EXPECT_TRUE(scan(*one_, table, status).empty());
      EXPECT_TRUE(status.ok()) << status.to_string();
      one_->abort();
    });
    watch_ = nullptr;
    ASSERT_NE(changed, nullptr);
    *changed = word;
  }
}

TEST_F(SlotScanTest, NoticesRowsThatComeAndGoBehindIt) {
  Coordinator& there = engine_.add_coordinator();
  Session other(there);
  TableId table = kNoTable;
  as_one([&] {
    table = make_table(1, 40);
    ASSERT_TRUE(insert(table, 0, 100, 20));
  });
  const std::vector<std::function<Status()>> changes = {
      [&] { return other.insert(table, "new", "r"); },
      [&] { return Status(other.remove(table, "7")); },
      [&] { return other.insert(table, "7", "s"); },
      [&] { return Status(other.put(table, "8", "s")); }};
  for (const auto& change : changes) {
    as_one([&] {
      Status status = one_->begin(options());
      EXPECT_GE(scan(*one_, table, status).size(), 100u);
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
    engine_.run(there, [&] {
      ASSERT_TRUE(other.begin(options()).ok());
      ASSERT_TRUE(change().ok());
      ASSERT_TRUE(other.commit().ok());
    });
    as_one([&] {
      ASSERT_TRUE(one_->put(table, "9", "t").ok());
      EXPECT_EQ(one_->commit().code(), Code::kAborted);
      one_->abort();
    });
  }
}

TEST_F(SlotScanTest, IsSharedPageByPage) {
  constexpr int kRows = 6000;  // of some pages
  as_one([&] {
    const TableId table = make_table(1, 40);
    for (int from = 0; from < kRows; from += 500) ASSERT_TRUE(insert(table, from, 500, 20));
    ASSERT_TRUE(one_->begin(options()).ok());
    uint64_t walk = 0;
    ASSERT_TRUE(one_->share_scan(table, &walk).ok());
    ASSERT_NE(walk, 0u);
    for (int turn = 0; turn < 2; turn++) {
      std::map<std::string, int> found;
      size_t scans_with_rows = 0;
      std::vector<ScanHandle> cursors;
      for (int i = 0; i < 3; i++) {
        auto cursor = one_->scan(table, kEveryCommand, ScanMode::kSerializable, {}, &walk);
        ASSERT_TRUE(cursor.ok());
        cursors.push_back(std::move(*cursor));
      }
      std::vector<size_t> rows(cursors.size());
      for (size_t ended = 0; ended < cursors.size();) {
        ended = 0;
        for (size_t i = 0; i < cursors.size(); i++) {
          std::vector<RowView> batch;
          const Status status = one_->scan_next(*cursors[i], batch);
          ASSERT_TRUE(status.ok()) << status.to_string();
          for (const RowView& row : batch) found[std::string(row.key)]++;
          rows[i] += batch.size();
          ended += batch.empty() ? 1 : 0;
        }
      }
      for (const size_t each : rows) scans_with_rows += each > 0 ? 1 : 0;
      EXPECT_EQ(scans_with_rows, cursors.size());
      EXPECT_EQ(found.size(), size_t{kRows});
      for (const auto& [key, times] : found) ASSERT_EQ(times, 1) << key;
      walk = Session::shared_walk_anew(walk);
    }
    EXPECT_TRUE(one_->commit().ok());
  });
}

// Guests at other coordinators, more of them than pages: some find all taken when they have looked
// where these are.
TEST_F(SlotScanTest, PagesAreTakenOnce) {
  constexpr int kRows = 6000, kGuests = 8;
  TableId table = kNoTable;
  HostTicket ticket;
  uint64_t walk = 0;
  as_one([&] {
    table = make_table(1, 40);
    for (int from = 0; from < kRows; from += 500) ASSERT_TRUE(insert(table, from, 500, 20));
    ASSERT_TRUE(one_->begin(options()).ok());
    ticket = one_->host(table).value();
    ASSERT_TRUE(one_->share_scan(table, &walk).ok());
    ASSERT_NE(walk, 0u);
  });
  std::map<std::string, int> found;
  size_t ended = 0;
  std::vector<std::unique_ptr<Session>> guests;
  for (int i = 0; i < kGuests; i++) {
    Coordinator& there = engine_.add_coordinator();
    Session& guest = *guests.emplace_back(std::make_unique<Session>(there));
    Scheduler& scheduler = there.worker().scheduler();
    ASSERT_TRUE(scheduler.spawn([&] {
      Status status = guest.begin_as_guest(ticket);
      for (const auto& [key, times] : scan(guest, table, status, &walk)) found[key] += times;
      EXPECT_TRUE(status.ok()) << status.to_string();
      guest.abort();
      ended++;
    }));
  }
  ASSERT_TRUE(engine_.run_until([&] { return ended == kGuests; }));
  EXPECT_EQ(found.size(), size_t{kRows});
  for (const auto& [key, times] : found) ASSERT_EQ(times, 1) << key;
  as_one([&] { one_->abort(); });
}

}  // namespace
}  // namespace rdmacc
