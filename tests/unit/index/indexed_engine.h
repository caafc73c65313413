#pragma once
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/index/index_scan.h"
#include "engine/index/ordered_index.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {

using Entries = std::set<std::string>;

// In the order of their numbers.
inline std::string number_entry(uint64_t number) {
  std::string entry(8, '\0');
  for (size_t i = 0; i < 8; i++) entry[i] = static_cast<char>(number >> (56 - 8 * i));
  return entry;
}

// A simulated cluster with one ordered index, for tests of it.
class IndexedEngine {
 public:
  explicit IndexedEngine(uint64_t seed) : engine_(seed, 1), coordinator_(add_coordinator()) {
    index_.table = make_table(1, kIndexRecordSize);
  }

  TableId make_table(uint32_t relfilenode, uint32_t record_size) {
    TableId made = kNoTable;
    engine_.run(coordinator_, [&] {
      Session session(coordinator_);
      TableSpec spec;
      spec.relfilenode = relfilenode;
      spec.record_size = record_size;
      spec.history = 3;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok()) << table.status().to_string();
      made = table->id;
    });
    return made;
  }

  SimEngine& engine() { return engine_; }
  Coordinator& coordinator() { return coordinator_; }
  Coordinator& add_coordinator() { return engine_.add_coordinator(); }
  const IndexRef& index() const { return index_; }
  TxnOptions& options() { return options_; }

  // Runs `body` in a transaction of the coordinator that is begun for it, and commits.
  void transact(Coordinator& coordinator, const std::function<void(Session&)>& body) {
    engine_.run(coordinator, [&] {
      Session session(coordinator);
      ASSERT_TRUE(session.begin(options_).ok());
      body(session);
      const Status committed = session.commit();
      EXPECT_TRUE(committed.ok()) << committed.to_string();
    });
  }
  void transact(const std::function<void(Session&)>& body) { transact(coordinator_, body); }

  Code insert(Session& session, std::string_view entry) const {
    return OrderedIndex(session, index_).insert(entry).code();
  }
  Code remove(Session& session, std::string_view entry) const {
    return OrderedIndex(session, index_).remove(entry).code();
  }

  // The height of the root, as a new transaction reads it.
  int height() {
    int found = -1;
    transact([&](Session& session) {
      FoundNode root;
      EXPECT_TRUE(Descent(session, index_).read(kRootNumber, root).ok());
      if (root.exists) found = root.node.height;
    });
    return found;
  }

  // What a scan gives, in its order.
  std::vector<std::string> scan(Session& session, const IndexRange& range, bool backward = false,
                                uint32_t visible_before = kEveryCommand) const {
    std::vector<std::string> entries;
    std::vector<std::string_view> batch;
    IndexScan cursor;
    cursor.seek(index_, range, backward, visible_before);
    do {
      const Status status = cursor.next(session, batch);
      EXPECT_TRUE(status.ok()) << status.to_string();
      if (!status.ok()) break;
      entries.insert(entries.end(), batch.begin(), batch.end());
    } while (!batch.empty());
    return entries;
  }

  // Both directions give what the model says.
  void expect_scans(Session& session, const IndexRange& range, const Entries& model,
                    uint32_t visible_before = kEveryCommand) const {
    const auto low = range.low_bounded ? model.lower_bound(range.low) : model.begin();
    auto high = range.high_bounded ? model.lower_bound(range.high) : model.end();
    if (range.empty()) high = low;
    const std::vector<std::string> expected(low, high);
    EXPECT_EQ(scan(session, range, false, visible_before), expected);
    const std::vector<std::string> reversed(expected.rbegin(), expected.rend());
    EXPECT_EQ(scan(session, range, true, visible_before), reversed);
  }

 private:
  SimEngine engine_;
  Coordinator& coordinator_;
  IndexRef index_;
  TxnOptions options_;
};

inline IndexRange between(std::string low, std::string high) {
  return {std::move(low), std::move(high), true, true};
}

// A range whose bounds are `a` and `b`, in whatever order, some of them missing.
inline IndexRange random_range(Random& random, std::string a, std::string b) {
  IndexRange range{std::move(a), std::move(b), !random.percent(20), !random.percent(20)};
  if (random.percent(95) && range.high < range.low) std::swap(range.low, range.high);
  return range;
}

}  // namespace rdmacc
