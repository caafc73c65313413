#pragma once
#include "engine/workloads/settings.h"
#include "tests/workloads/predicate_rows.h"

namespace rdmacc {

extern const WorkloadKind kPredicateKind;

// TxnInputs::kind, as they are told below.
enum class PredicateKind : uint32_t { kQuota, kOnCall, kPair, kMove, kSettle, kAudit, kLookUp };
constexpr PredicateKind kPredicateScans[] = {PredicateKind::kQuota, PredicateKind::kOnCall,
                                             PredicateKind::kSettle, PredicateKind::kAudit};

// Transactions that decide by what is not there, for the simulator and the checker: what they
// count, and the absent keys that they look up, must still be so when they commit. Two tables
// that all kinds of transactions share; five kinds write, two only read:
//   quota   scans a class; inserts a row if there are fewer than its quota, else deletes one
//   on call scans both tables; one of those on call leaves if another stays, else one comes
//   pair    looks up both keys of a pair, one in each table; leaves, or comes if both are absent
//   move    deletes a token's row from one table and inserts it into the other
//   settle  scans both tables and moves value from one token to another: read-mostly
//   audit   scans both tables and checks all that must hold
//   look up reads every key that there may be, present or not, and checks the same
// A transaction that commits has seen what may hold only (else kCorrupt), and so does the last
// look.
class Predicate : public Workload {
 public:
  explicit Predicate(const PredicateOptions& options);

  const char* name() const override { return "predicate"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

 private:
  const PredicateOptions options_;
};

}  // namespace rdmacc
