// Tests of the tests: what a broken engine would have reported is noticed.
#include <gtest/gtest.h>

#include <map>

#include "engine/check/checker.h"
#include "engine/check/key_histories.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

using Place = std::pair<TableId, std::string>;

std::vector<HistoryTransaction> clean_history(uint64_t seed,
                                              SimScenario::Load load = SimScenario::Load::kMixed) {
  SimScenario scenario;
  scenario.load = load;
  scenario.seed = seed;
  scenario.protocol = seed % 2 == 0 ? Protocol::kOcc : Protocol::kNowait;
  scenario.code = static_cast<uint16_t>(Random(seed).below(64));
  SimRun run(scenario);
  EXPECT_EQ(run.run(), "");
  return run.history();
}

bool committed(const HistoryTransaction& transaction) {
  return transaction.outcome == HistoryOutcome::kCommitted;
}

bool serializable(const std::vector<HistoryTransaction>& history) {
  return check_serializable(history, {}).serializable;
}

// The version before, of every version of an update.
std::map<std::pair<Place, uint64_t>, uint64_t> predecessors(
    const std::vector<HistoryTransaction>& history) {
  std::map<Place, std::map<uint64_t, bool>> versions;  // stamp: can be read
  for (const HistoryTransaction& transaction : history) {
    if (!committed(transaction)) continue;
    for (const HistoryEvent& event : transaction.events) {
      if (makes_a_version(event.op)) {
        versions[{event.table, event.key}][event.version] = event.op != HistoryOp::kDelete;
      }
    }
  }
  std::map<std::pair<Place, uint64_t>, uint64_t> before;
  for (const auto& [place, stamps] : versions) {
    for (auto at = stamps.begin(); at != stamps.end(); ++at) {
      if (at == stamps.begin() || !std::prev(at)->second) continue;
      before[{place, at->first}] = std::prev(at)->first;
    }
  }
  return before;
}

bool writes(const HistoryTransaction& transaction, const HistoryEvent& read) {
  for (const HistoryEvent& event : transaction.events) {
    const bool write = event.op == HistoryOp::kWrite || event.op == HistoryOp::kDelete;
    if (write && event.table == read.table && event.key == read.key) return true;
  }
  return false;
}

TEST(Mutants, ALostUpdateIsNoticed) {
  uint32_t mutants = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<HistoryTransaction> history = clean_history(seed);
    const auto before = predecessors(history);
    for (HistoryTransaction& transaction : history) {
      if (!committed(transaction)) continue;
      for (HistoryEvent& event : transaction.events) {
        const auto stale = before.find({{event.table, event.key}, event.version});
        if (event.op != HistoryOp::kRead || stale == before.end() || !writes(transaction, event)) {
          continue;
        }
        const uint64_t read = event.version;
        event.version = stale->second;  // as if it had not been locked, or not validated
        EXPECT_FALSE(serializable(history)) << "seed " << seed;
        event.version = read;
        ++mutants;
      }
    }
  }
  EXPECT_GT(mutants, 20u);
}

TEST(Mutants, ALostCommitIsNoticed) {
  uint32_t mutants = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<HistoryTransaction> history = clean_history(seed);
    std::map<uint64_t, size_t> writer;
    for (size_t t = 0; t < history.size(); ++t) {
      for (const HistoryEvent& event : history[t].events) {
        if (event.op == HistoryOp::kWrite && committed(history[t])) writer[event.version] = t;
      }
    }
    for (size_t t = 0; t < history.size(); ++t) {
      if (!committed(history[t])) continue;
      for (const HistoryEvent& event : history[t].events) {
        const auto made = writer.find(event.version);
        if (event.op != HistoryOp::kRead || made == writer.end() || made->second == t) continue;
        history[made->second].outcome = HistoryOutcome::kAborted;
        EXPECT_FALSE(serializable(history)) << "seed " << seed;
        history[made->second].outcome = HistoryOutcome::kCommitted;
        ++mutants;
      }
    }
  }
  EXPECT_GT(mutants, 20u);
}

TEST(Mutants, APhantomIsNoticed) {
  uint32_t mutants = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<HistoryTransaction> history = clean_history(seed);
    for (HistoryTransaction& transaction : history) {
      bool scans = false;
      for (const HistoryEvent& event : transaction.events) {
        scans = scans || event.op == HistoryOp::kScan;
      }
      if (!scans || !committed(transaction)) continue;
      if (transaction.events[0].op != HistoryOp::kScan) continue;
      const std::vector<HistoryEvent> all = transaction.events;
      for (const HistoryEvent& missed : all) {
        if (missed.op != HistoryOp::kRead || writes(transaction, missed) ||
            missed.table != all[0].table) {
          continue;
        }
        // As if the scan had passed by a row that was there.
        std::erase_if(transaction.events, [&missed](const HistoryEvent& event) {
          return event.op == HistoryOp::kRead && event.table == missed.table &&
                 event.key == missed.key;
        });
        EXPECT_FALSE(serializable(history)) << "seed " << seed << " " << missed.key;
        transaction.events = all;
        ++mutants;
      }
    }
  }
  EXPECT_GT(mutants, 5u);
}

bool only_reads(const HistoryTransaction& transaction) {
  for (const HistoryEvent& event : transaction.events) {
    if (makes_a_version(event.op)) return false;
  }
  return true;
}

// As if a reader that came late had been given what it read long ago.
TEST(Mutants, AStaleReaderIsNoticed) {
  uint32_t mutants = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<HistoryTransaction> history = clean_history(seed, SimScenario::Load::kPredicate);
    std::map<std::pair<Place, uint64_t>, bool> overwritten;
    for (const auto& [version, before] : predecessors(history)) {
      overwritten[{version.first, before}] = true;
    }
    uint64_t end_us = 0;
    for (const HistoryTransaction& transaction : history) {
      end_us = std::max(end_us, transaction.end_us);
    }
    for (HistoryTransaction& transaction : history) {
      if (!committed(transaction) || !only_reads(transaction)) continue;
      bool stale = false;
      for (const HistoryEvent& event : transaction.events) {
        stale = stale || (event.op == HistoryOp::kRead &&
                          overwritten.contains({{event.table, event.key}, event.version}));
      }
      if (!stale) continue;
      const HistoryTransaction clean = transaction;
      transaction.start_us = transaction.end_us = end_us + 1;
      const CheckReport report = check_serializable(history, {.real_time = true});
      EXPECT_TRUE(report.serializable) << "seed " << seed << ": " << report.problem;
      EXPECT_FALSE(report.strictly_serializable) << "seed " << seed;
      EXPECT_EQ(report.real_time_violations, 1u) << "seed " << seed;
      transaction = clean;
      ++mutants;
    }
  }
  EXPECT_GT(mutants, 20u);
}

// As if a scan had given the version before of a row whose writer had ended before it began.
TEST(Mutants, AnOldRowInAScanIsNoticed) {
  uint32_t mutants = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<HistoryTransaction> history = clean_history(seed, SimScenario::Load::kPredicate);
    const auto before = predecessors(history);
    std::map<uint64_t, uint64_t> end_of_writer;  // by stamp
    for (const HistoryTransaction& transaction : history) {
      for (const HistoryEvent& event : transaction.events) {
        if (committed(transaction) && makes_a_version(event.op)) {
          end_of_writer[event.version] = transaction.end_us;
        }
      }
    }
    for (HistoryTransaction& transaction : history) {
      if (!committed(transaction) || transaction.events.empty() ||
          transaction.events[0].op != HistoryOp::kScan) {
        continue;
      }
      for (HistoryEvent& event : transaction.events) {
        const auto stale = before.find({{event.table, event.key}, event.version});
        if (event.op != HistoryOp::kRead || stale == before.end()) continue;
        if (end_of_writer[event.version] >= transaction.start_us) continue;
        const uint64_t read = event.version;
        event.version = stale->second;
        EXPECT_FALSE(check_serializable(history, {.real_time = true}).strictly_serializable)
            << "seed " << seed << " " << event.key;
        event.version = read;
        ++mutants;
      }
    }
  }
  EXPECT_GT(mutants, 20u);
}

}  // namespace
}  // namespace rdmacc
