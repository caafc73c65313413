#pragma once
#include "engine/index/descent.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

extern const WorkloadKind kIndexedKind;

struct IndexedOptions {
  uint32_t records = 40;            // keys of rows that there may be; half of them at first
  uint32_t attributes = 12;         // values that many rows share
  uint32_t filler_bytes = 40;       // of each entry: the longer, the sooner nodes are split
  uint32_t read_only_percent = 30;  // of the transactions
  uint32_t audit_percent = 10;      // of those
  uint32_t span = 0;                // values of a range, at most; 0: all, or unbounded
  bool sorted = false;              // indexes are loaded by IndexLoader
  uint32_t history = 3;             // old versions kept of a row
  Covers covers = covers_by_fences;
};

// A table with two ordered indexes over it, kept by the transactions themselves: one of an
// attribute that many rows share, one of a tag that no two rows may share. Kinds:
//   toggle  rows that are there go, with their entries; others come, if their tag is free
//   move    rows get another attribute and, if it is free, another tag
//   range   some entries of either index, and the rows that they name
//   audit   the whole table and both indexes
// What was read of table and indexes agrees in every transaction that commits (else kCorrupt), and
// at the end.
class Indexed : public Workload {
 public:
  explicit Indexed(const IndexedOptions& options);

  const char* name() const override { return "indexed"; }
  std::vector<TableSpec> table_specs() const override;
  bool is_ordered_index(size_t number) const override { return number != 0; }
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

 private:
  Status load_at_once(Session& session, const TxnOptions& options);

  const IndexedOptions options_;
};

}  // namespace rdmacc
