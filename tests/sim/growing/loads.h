#pragma once
#include "engine/workloads/settings.h"
#include "tests/sim/door/hot_keys.h"

namespace rdmacc {

struct LoadsOptions {
  uint32_t rows_max = 100;    // of one transaction
  uint32_t hot_groups = 3;    // of a node's first 16 that all keys fall into
  uint32_t deep_rows = 0;     // of each transaction (hot_keys.h)
  uint32_t rows_at_once = 0;  // of each transaction; 0: drawn, up to rows_max
  uint32_t history = kDefaultHistory;
};

// Bulk loads: transactions that only insert rows, unchecked, many at a time, into one table, and
// make its groups split while others look for theirs. Once all is at rest an uncached look-up takes
// few round trips.
class Loads : public Workload {
 public:
  static constexpr uint64_t kRoundTripsMax = 3;  // group, record, overflow

  explicit Loads(const LoadsOptions& options) : options_(options), keys_(options.hot_groups) {}

  const char* name() const override { return "loads"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session&, const TxnOptions&, uint64_t, uint64_t) override { return Status(); }
  bool grows() const override { return true; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool knows(const TxnInputs& inputs) const override { return inputs.count == 2; }
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

 private:
  const LoadsOptions options_;
  const HotKeys keys_;
};

}  // namespace rdmacc
