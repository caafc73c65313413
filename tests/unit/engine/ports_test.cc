// Rounds of verbs are carried out by chains or in place; which of them makes no difference to what
// a transaction does: before and after it is logged, both ports touch the same words of every
// record, group and ring in the same order.
#include <set>
#include <tuple>

#include "engine/storage/layout/region_layout.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

// What a verb touches, without the values, which follow from the time.
using Touch = std::tuple<NodeId, Opcode, uint64_t, uint32_t, WordOrder>;
using Place = std::pair<NodeId, uint64_t>;

Place place_of(const Touch& touch) { return {std::get<NodeId>(touch), std::get<uint64_t>(touch)}; }

class PortsTest : public testing::TestWithParam<ProtocolAndStages> {
 protected:
  TxnOptions options() const {
    TxnOptions options;
    options.protocol = std::get<0>(GetParam());
    options.plan = StagePlan(std::get<1>(GetParam()));
    return options;
  }

  // Everything that a session can do to rows, alone, on a cluster of its own.
  std::vector<Touch> touches(bool one_by_one) {
    SimEngine engine(7, 1, 2, 192ull << 20, one_by_one);
    engine.options().reserved_slots_max = 0;      // which ones there are follows from the time
    engine.options().location_cache_entries = 0;  // in place a bucket is as near
    Coordinator& coordinator = engine.add_coordinator();
    const WorkerId self = coordinator.worker().id();
    const RegionLayout layout(coordinator.topology());
    std::vector<Touch> touched;
    chains_ = 0;
    engine.fabric().set_rewriter([&](WorkerId worker, NodeId node, std::vector<Verb>& verbs) {
      if (worker != self) return;
      ++chains_;
      for (const Verb& verb : verbs) {
        // What a worker tells the gate of epochs follows from the time.
        if (verb.remote_offset >= layout.control && verb.remote_offset < layout.directory) continue;
        touched.emplace_back(node, verb.opcode, verb.remote_offset, verb.bytes, verb.order);
      }
    });
    engine.run(coordinator, [&] { work(coordinator); });
    reads_of_both_ = 0;
    const std::set<Place> headers = headers_of(touched);
    return by_record(read_apart(touched, headers), headers, layout);
  }

  // A header is what is locked, or looked at a second time.
  static std::set<Place> headers_of(const std::vector<Touch>& touched) {
    std::set<Place> headers;
    for (const Touch& touch : touched) {
      const auto [node, offset] = place_of(touch);
      const bool atomic = std::get<Opcode>(touch) == Opcode::kCompareSwap;
      if (atomic || std::get<WordOrder>(touch) == WordOrder::kDescending) {
        headers.insert({node, offset / sizeof(Header) * sizeof(Header)});
      }
    }
    return headers;
  }

  // Where a lock keeps header and record as they are, one posted READ has both.
  std::vector<Touch> read_apart(const std::vector<Touch>& touched, const std::set<Place>& headers) {
    std::vector<Touch> apart;
    for (const Touch& touch : touched) {
      const auto [node, opcode, offset, bytes, order] = touch;
      const bool both =
          opcode == Opcode::kRead && bytes > sizeof(Header) && headers.contains({node, offset});
      apart.emplace_back(node, opcode, offset, both ? sizeof(Header) : bytes, order);
      if (!both) continue;
      ++reads_of_both_;
      apart.emplace_back(node, opcode, offset + sizeof(Header), bytes - sizeof(Header), order);
    }
    return apart;
  }

  // Between two records no order is promised but that of the log: a round takes all of them, and in
  // place they take turns.
  static std::vector<Touch> by_record(const std::vector<Touch>& touched,
                                      const std::set<Place>& headers, const RegionLayout& layout) {
    std::map<NodeId, size_t> logged;
    std::vector<std::tuple<NodeId, size_t, uint64_t, Touch>> sorted;
    for (const Touch& touch : touched) {
      const auto [node, offset] = place_of(touch);
      if (offset >= layout.log_rings && offset < layout.order) logged[node]++;
      const auto behind = headers.upper_bound({node, offset});
      const bool known = behind != headers.begin() && std::prev(behind)->first == node;
      sorted.emplace_back(node, logged[node], known ? std::prev(behind)->second : offset, touch);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& one, const auto& other) {
      return std::tie(std::get<0>(one), std::get<1>(one), std::get<2>(one)) <
             std::tie(std::get<0>(other), std::get<1>(other), std::get<2>(other));
    });
    std::vector<Touch> in_order;
    for (const auto& each : sorted) in_order.push_back(std::get<Touch>(each));
    return in_order;
  }

  void work(Coordinator& coordinator) {
    Session session(coordinator);
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 64;
    spec.history = 3;
    auto table = session.create_table(spec);
    ASSERT_TRUE(table.ok());
    insert(session, table->id);
    change(session, table->id);
    read(session, table->id);
  }
  void insert(Session& session, TableId table) {
    ASSERT_TRUE(session.begin(options()).ok());
    for (int i = 0; i < kRows; i++) {
      ASSERT_TRUE(session.insert(table, "key " + std::to_string(i), "row").ok());
    }
    ASSERT_TRUE(session.commit().ok());
  }
  // An update that fits its slot, one that does not, a delete, an insert, a key that is absent.
  void change(Session& session, TableId table) {
    RowView row;
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.put(table, "key 1", "other").ok());
    ASSERT_TRUE(session.put(table, "key 2", std::string(900, 'x')).ok());
    ASSERT_TRUE(session.remove(table, "key 3").ok());
    ASSERT_TRUE(session.insert(table, "key new", "row").ok());
    ASSERT_TRUE(session.get(table, "key absent", row).ok());
    EXPECT_FALSE(row.found);
    ASSERT_TRUE(session.commit().ok());
  }
  void read(Session& session, TableId table) {
    std::vector<std::string> names;
    for (int i = 0; i < kRows; i++) names.push_back("key " + std::to_string(i));
    const std::vector<std::string_view> keys(names.begin(), names.end());
    std::vector<RowView> rows(keys.size());
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get_many(table, keys, rows).ok());
    EXPECT_EQ("other", rows[1].row);
    EXPECT_EQ(900u, rows[2].row.size());
    EXPECT_FALSE(rows[3].found);
    auto scan = session.scan(table);
    ASSERT_TRUE(scan.ok());
    std::vector<RowView> batch;
    size_t seen = 0;
    do {
      ASSERT_TRUE(session.scan_next(**scan, batch).ok());
      seen += batch.size();
    } while (!batch.empty());
    EXPECT_EQ(kRows + 0u, seen);
    scan->reset();
    ASSERT_TRUE(session.commit().ok());
  }

  static constexpr int kRows = 20;
  size_t chains_ = 0;
  size_t reads_of_both_ = 0;
};

TEST_P(PortsTest, TouchTheSameWordsInTheSameOrder) {
  const std::vector<Touch> posted = touches(false);
  const size_t chains = chains_;
  const std::vector<Touch> in_place = touches(true);
  ASSERT_FALSE(HasFailure());
  EXPECT_LT(2 * chains, chains_) << "verbs are not carried out one by one";
  ASSERT_EQ(posted.size(), in_place.size());
  for (size_t i = 0; i < posted.size(); i++) {
    ASSERT_TRUE(posted[i] == in_place[i])
        << "verb " << i << ": offset " << std::get<uint64_t>(posted[i]) << " and "
        << std::get<uint64_t>(in_place[i]);
  }
}

// Of what is not locked it would prove nothing.
TEST_P(PortsTest, OnePostedReadHasHeaderAndRecordUnderALock) {
  touches(/*one_by_one=*/false);
  ASSERT_FALSE(HasFailure());
  const bool locks = rules_of(std::get<0>(GetParam()))->locks_what_it_reads();
  EXPECT_EQ(locks, reads_of_both_ > 0) << reads_of_both_;
}

INSTANTIATE_TEST_SUITE_P(Protocols, PortsTest,
                         testing::Combine(testing::ValuesIn(protocols_without_order()),
                                          testing::Values(kOneSided)),
                         name_of);

}  // namespace
}  // namespace rdmacc
