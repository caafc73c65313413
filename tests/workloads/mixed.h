#pragma once
#include "engine/workloads/settings.h"

namespace rdmacc {

struct MixedOptions {
  uint32_t keys = 10;                  // of each table; few, so that transactions meet
  uint32_t operations_max = 6;         // of one transaction
  uint32_t scan_percent = 5;           // of the operations
  uint32_t user_abort_percent = 4;     // of the transactions
  uint32_t history = kDefaultHistory;  // old versions that a multi-version protocol keeps
  uint32_t read_only_percent = 0;      // of the transactions: gets, misses and scans alone
};

extern const WorkloadKind kMixedKind;

// Every operation of a session on a few keys that come and go, for the simulator and the checker:
// reads alone and many at once, misses, writes, inserts, deletes, scans, savepoints with
// rollback, and users that change their mind. Rows say to which key they belong and are filled
// with one byte, up to lengths that overflow, so a torn or misplaced row is noticed (kCorrupt). A
// transaction also checks that it sees its own writes.
class Mixed : public Workload {
 public:
  explicit Mixed(const MixedOptions& options) : options_(options) {}

  const char* name() const override { return "mixed"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Unless it scans.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  bool knows(const TxnInputs& inputs) const override { return inputs.count == 1; }
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

 private:
  const MixedOptions options_;
};

}  // namespace rdmacc
