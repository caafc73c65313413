// Workloads' transactions as procedures: what nodes refuse, and that the same inputs and rows give
// the same writes.
#include "engine/workloads/procedures.h"

#include <set>

#include "engine/storage/wire/messages.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {
namespace {

class WorkloadProcedures : public testing::Test {
 protected:
  WorkloadProcedures() { add_workload_procedures(procedures_, WorkloadCluster{2, true}); }

  // A smallbank deposit of 50 to account 1, with something wrong about it or not.
  static std::string deposit(std::string_view settings, uint32_t tables, uint32_t kind,
                             uint32_t values) {
    std::vector<std::byte> bytes;
    MessageWriter out(bytes);
    out.bytes(settings);
    out.u32(tables);
    for (uint32_t i = 0; i < tables; i++) out.u32(i);
    out.u8(0);
    out.u32(kind);
    out.u32(values);
    constexpr uint64_t kValues[] = {1, 2, 50};
    for (uint32_t i = 0; i < values; i++) out.u64(kValues[i % 3]);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  ProcedureResult call(std::string_view workload, const std::string& inputs, bool found = true) {
    const Procedure* procedure = procedures_.find(procedure_number(workload));
    CHECK(procedure != nullptr);
    const int64_t balance = 100;
    const std::string key("\0\0\0\0\0\0\0\1", 8);
    const std::vector<OrderedRead> reads{{1, key, false, 0}};
    const std::vector<OrderedRow> rows{
        {found, 3, std::string(reinterpret_cast<const char*>(&balance), 8)}};
    ProcedureResult result;
    (*procedure)({inputs, reads, rows, coordinator_.worker().scheduler()}, result);
    return result;
  }

  SimEngine engine_{1};
  Coordinator& coordinator_ = engine_.add_coordinator();
  ProcedureRegistry procedures_;
};

TEST_F(WorkloadProcedures, HaveANumberForEachWorkload) {
  std::set<uint32_t> numbers;
  for (const WorkloadKind* kind : workload_kinds()) numbers.insert(procedure_number(kind->name));
  EXPECT_EQ(numbers.size(), workload_kinds().size());
  EXPECT_EQ(numbers.count(0), 0u);
  EXPECT_EQ(procedure_number("nothing"), 0u);
}

TEST_F(WorkloadProcedures, GiveTheSameWritesForTheSameRows) {
  const ProcedureResult one = call("smallbank", deposit("records=10", 2, 1, 3));
  const ProcedureResult other = call("smallbank", deposit("", 2, 1, 3));
  ASSERT_TRUE(one.status.ok()) << one.status.to_string();
  ASSERT_EQ(one.writes.size(), 1u);
  int64_t balance = 0;
  ASSERT_EQ(one.writes[0].row.size(), 8u);
  memcpy(&balance, one.writes[0].row.data(), 8);
  EXPECT_EQ(balance, 150);
  ASSERT_EQ(other.writes.size(), 1u);
  EXPECT_EQ(other.writes[0].row, one.writes[0].row);
  EXPECT_EQ(other.output, one.output);
}

TEST_F(WorkloadProcedures, RefuseWhatNoClientOfTheirsWouldSend) {
  const auto refused = [this](const std::string& inputs) {
    return call("smallbank", inputs).status.code();
  };
  EXPECT_EQ(refused(""), Code::kInvalidArgument);
  EXPECT_EQ(refused("anything"), Code::kInvalidArgument);
  EXPECT_EQ(refused(deposit("records=1", 2, 1, 3)), Code::kInvalidArgument);
  EXPECT_EQ(refused(deposit("", 3, 1, 3)), Code::kInvalidArgument);   // tables
  EXPECT_EQ(refused(deposit("", 2, 99, 3)), Code::kInvalidArgument);  // kind
  EXPECT_EQ(refused(deposit("", 2, 1, 2)), Code::kInvalidArgument);   // values
  EXPECT_EQ(refused(deposit("", 2, 1, kTxnValuesMax + 1)), Code::kInvalidArgument);
  // A transfer needs a key that was not declared; an account that is not there is corrupt.
  EXPECT_EQ(refused(deposit("", 2, 0, 3)), Code::kInvalidArgument);
  EXPECT_EQ(call("smallbank", deposit("", 2, 1, 3), false).status.code(), Code::kCorrupt);
  for (const WorkloadKind* kind : workload_kinds()) {
    EXPECT_EQ(call(kind->name, deposit("", 2, 77, 3)).status.code(), Code::kInvalidArgument)
        << kind->name;
  }
  // An index finds its own way, which cannot be declared.
  for (uint32_t kind = 0; kind < 4; kind++) {
    EXPECT_EQ(call("indexed", deposit("", 3, kind, 1)).status.code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace rdmacc
