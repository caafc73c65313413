#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "engine/storage/layout/hash_index.h"
#include "engine/verify/verify.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {

// A simulated cluster with one table, whose memory a test may damage before it has it verified.
class VerifiedEngine {
 public:
  static constexpr uint32_t kRows = 4000;
  static constexpr uint32_t kRecordSize = 64;
  static constexpr uint32_t kLongRow = 400;  // of every kLongRowEvery-th row: in overflow blocks
  static constexpr uint32_t kLongRowEvery = 50;

  explicit VerifiedEngine(uint64_t seed, Protocol protocol = Protocol::kOcc, uint32_t rows = kRows)
      : engine_(seed), coordinator_(engine_.add_coordinator()) {
    options_.txn.protocol = protocol;
    options_.units = true;
    engine_.run(coordinator_, [&] {
      Session session(coordinator_);
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = kRecordSize;
      spec.history = 2;
      auto table = session.create_table(spec);
      ASSERT_TRUE(table.ok());
      table_ = *table;
      for (uint32_t i = 0; i < rows; i += 100) {
        ASSERT_TRUE(session.begin(options_.txn).ok());
        for (uint32_t k = i; k < std::min(i + 100, rows); ++k) {
          ASSERT_TRUE(session.insert(table_.id, key(k), row(k)).ok());
        }
        ASSERT_TRUE(session.commit().ok());
        session.scheduler().sleep_for(1'000);
      }
      session.scheduler().sleep_for(100'000);
    });
  }

  static std::string key(uint32_t number) { return "row " + std::to_string(number); }
  static std::string row(uint32_t number) {
    return std::string(number % kLongRowEvery == 0 ? kLongRow : 20, 'r');
  }

  std::vector<Finding> verify(bool ordered_index = false) {
    std::vector<Finding> findings;
    engine_.run(coordinator_, [&] {
      Session session(coordinator_);
      const TableToVerify table{table_.id, ordered_index};
      auto report = verify_tables(session, std::span(&table, 1), options_);
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      findings = std::move(report->findings);
      rows_ = report->rows;
    });
    return findings;
  }
  // What kinds of findings there are, each once.
  std::set<std::string> kinds() {
    std::set<std::string> kinds;
    for (const Finding& finding : verify()) kinds.insert(finding.kind);
    return kinds;
  }

  SimEngine& engine() { return engine_; }
  Coordinator& coordinator() { return coordinator_; }
  VerifyOptions& options() { return options_; }
  TableId table() const { return table_.id; }
  uint64_t rows() const { return rows_; }

  // ---- The memory of a node.
  std::byte* region(NodeId node) { return engine_.node(node).worker().endpoint().local_region(); }
  template <typename T>
  T& at(NodeId node, uint64_t offset) {
    return *reinterpret_cast<T*>(region(node) + offset);
  }
  NodeId node_of(std::string_view key) { return home_node_of(table_.id, key, nodes()); }
  NodeId nodes() { return coordinator_.topology().nodes; }
  IndexRoot root(NodeId node) {
    const RegionLayout layout(coordinator_.topology());
    return IndexRoot{at<DirectoryEntry>(node, layout.directory_entry(table_.id)).root};
  }
  uint64_t& root_slot(NodeId node, uint64_t i) {
    return at<uint64_t>(node, root(node).offset() + 8 * i);
  }
  uint64_t group_of(NodeId node, uint64_t hash) {
    return root_slot(node, group_bits_of(hash, root(node).depth()));
  }
  // The place of a key's entry.
  struct Place {
    NodeId node;
    uint64_t hash, group, bucket, entry;
  };
  Place find(std::string_view key) {
    const uint64_t hash = hash_key(table_.id, key);
    Place place{node_of(key), hash, 0, 0, 0};
    place.group = group_of(place.node, hash);
    place.bucket = bucket_offset(place.group, home_bucket_of(hash));
    while (place.bucket != 0) {
      const Bucket& bucket = at<Bucket>(place.node, place.bucket);
      for (uint32_t i = 0; i < kEntriesPerBucket; ++i) {
        const uint64_t entry = bucket.entries[i];
        if (entry == 0 || at<Header>(place.node, entry_offset(entry)).key_hash != hash) continue;
        place.entry = place.bucket + 8 * i;
        return place;
      }
      place.bucket = bucket.next;
    }
    ADD_FAILURE() << "no entry for " << key;
    return place;
  }
  uint64_t& entry(const Place& place) { return at<uint64_t>(place.node, place.entry); }
  Header& record(const Place& place) { return at<Header>(place.node, entry_offset(entry(place))); }

 private:
  SimEngine engine_;
  Coordinator& coordinator_;
  VerifyOptions options_;
  TableMeta table_;
  uint64_t rows_ = 0;
};

}  // namespace rdmacc
