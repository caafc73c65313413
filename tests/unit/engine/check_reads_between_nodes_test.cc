// Session::check_reads() of rows on different nodes, while writers change both in each
// transaction: what it lets pass is of one moment, also where nodes install one transaction at
// different times.
#include "engine/cluster/partition_map.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kWrites = 150, kReadsMin = 20;
// A commit's writes become visible one after another: reads in between are tried in vain.
constexpr int kReadsMax = 5'000;

class CheckReadsBetweenNodesTest : public TwoSessions {
 protected:
  // Two names that live on two nodes.
  void find_keys() {
    const PartitionMap map(2, 0);
    const NodeId of_a = map.primary_of(hash_key(table_, "a"));
    for (const char* key : {"b", "c", "d", "e", "f", "g", "h", "i"}) {
      other_key_ = key;
      if (map.primary_of(hash_key(table_, key)) != of_a) return;
    }
    FAIL() << "all keys are on one node";
  }
  Status write_both(int number) {
    const std::string row = std::to_string(number);
    RDMACC_RETURN_IF_ERROR(other_.begin(options()));
    Status status = other_.put(table_, "a", row);
    if (status.ok()) status = other_.put(table_, other_key_, row);
    return status.ok() ? other_.commit() : status;
  }
  // Whether the rows that were read belong together; nothing where the check says no.
  void read_both() {
    RowView row;
    reads_++;
    ASSERT_TRUE(one_.begin(options()).ok());
    Status status = one_.get(table_, other_key_, row);
    const std::string second(row.found ? row.row : "");
    if (status.ok()) status = one_.get(table_, "a", row);
    const std::string first(row.found ? row.row : "");
    if (status.ok()) status = one_.check_reads();
    if (status.ok()) {
      passed_++;
      EXPECT_EQ(first, second);
    }
    one_.abort();
  }

  std::string other_key_;
  int reads_ = 0, passed_ = 0;
};

TEST_P(CheckReadsBetweenNodesTest, WhatPassesBelongsTogether) {
  find_keys();
  as_other([&] { ASSERT_TRUE(write_both(0).ok()); });
  bool writing = true;
  ASSERT_TRUE(there_.worker().scheduler().spawn([&] {
    for (int i = 1; i <= kWrites; i++) {
      if (!write_both(i).ok()) other_.abort();
    }
    writing = false;
  }));
  as_one([&] {
    while (reads_ < kReadsMax && (writing || passed_ < kReadsMin)) read_both();
  });
  EXPECT_FALSE(writing);
  EXPECT_GE(passed_, kReadsMin);
}

INSTANTIATE_TEST_SUITE_P(Protocols, CheckReadsBetweenNodesTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
