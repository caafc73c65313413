#pragma once
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "engine/protocols/registry.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {

using ProtocolAndStages = std::tuple<Protocol, uint16_t>;
constexpr uint16_t kOneSided = 511, kRpc = 0;

inline std::string name_of(const testing::TestParamInfo<ProtocolAndStages>& each) {
  return std::string(protocol_name(std::get<0>(each.param))) + "_" +
         std::to_string(std::get<1>(each.param));
}

// Each with stages one-sided, and by RPC.
inline auto every_protocol() {
  return testing::Combine(testing::ValuesIn(available_protocols()),
                          testing::Values(kOneSided, kRpc));
}
// All but those that execute their transactions in one order for the cluster (CALVIN).
inline std::vector<Protocol> protocols_without_order() {
  std::vector<Protocol> protocols;
  for (const Protocol protocol : available_protocols()) {
    if (!executes_procedures(protocol)) protocols.push_back(protocol);
  }
  return protocols;
}
inline auto every_protocol_without_order() {
  return testing::Combine(testing::ValuesIn(protocols_without_order()),
                          testing::Values(kOneSided, kRpc));
}

// Two sessions of a simulated cluster that take turns, on a table with the rows "a", "b" and "c",
// all "0".
class TwoSessions : public testing::TestWithParam<ProtocolAndStages> {
 protected:
  // `one_by_one`: others come between any two accesses to memory.
  explicit TwoSessions(bool one_by_one = false, uint64_t region_bytes = 192ull << 20)
      : engine_(std::get<1>(GetParam()) + 3u, 1, 2, region_bytes, one_by_one),
        here_(engine_.add_coordinator()),
        there_(engine_.add_coordinator()),
        one_(here_),
        other_(there_) {
    engine_.run(here_, [&] {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 64;
      spec.history = 3;
      auto table = one_.create_table(spec);
      ASSERT_TRUE(table.ok());
      table_ = table->id;
      ASSERT_TRUE(one_.begin(options()).ok());
      for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(one_.insert(table_, key, "0").ok());
      ASSERT_TRUE(one_.commit().ok());
    });
  }
  // What a failed test has left under way.
  ~TwoSessions() override {
    engine_.run(here_, [&] { one_.abort(); });
    engine_.run(there_, [&] { other_.abort(); });
  }

  Protocol protocol() const { return std::get<0>(GetParam()); }
  TxnOptions options() const {
    TxnOptions options;
    options.protocol = protocol();
    options.plan = StagePlan(std::get<1>(GetParam()));
    return options;
  }
  void as_one(const std::function<void()>& body) { engine_.run(here_, body); }
  void as_other(const std::function<void()>& body) { engine_.run(there_, body); }

  SimEngine engine_;
  Coordinator& here_;
  Coordinator& there_;
  Session one_, other_;
  TableId table_ = kNoTable;
};

}  // namespace rdmacc
