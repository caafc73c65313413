#pragma once
#include "engine/workloads/settings.h"
#include "tests/sim/door/hot_keys.h"

namespace rdmacc {

struct HeadsOptions {
  uint32_t heads = 4;
  uint32_t hot_groups = 2;           // of a node's first 16 that all rows fall into
  uint32_t fillers_max = 12;         // rows that a transaction adds for the sake of splits
  uint32_t fillers_percent = 100;    // of the transactions that add
  uint64_t pause_us_max = 400;       // of a look, between the rows and their head
  uint32_t head_first_percent = 40;  // of the looks: the head, and then the rows
  uint32_t history = kDefaultHistory;
};

// Rows that come one after the other, each with a head that counts them: a transaction adds the
// next row and counts it, and many rows more, so that groups split. Others look for the next rows
// and for the head, in either order and with a pause between: a row is there if the head counts
// it, and not otherwise. So an absence that was read before a split has to hold until the end.
class Heads : public Workload {
 public:
  enum Kind : uint32_t { kAdd, kLook, kScan, kKinds };

  explicit Heads(const HeadsOptions& options) : options_(options), keys_(options.hot_groups) {}

  const char* name() const override { return "heads"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  bool grows() const override { return true; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool knows(const TxnInputs& inputs) const override { return inputs.kind < kKinds; }
  Status check(Session&, const TxnOptions&, int64_t, std::string& violation) const override;

 private:
  Status add(Session& session, uint64_t head, uint64_t drawn) const;
  Status look(Session& session, uint64_t head, uint64_t drawn, std::string& doubt) const;
  Status scan(Session& session, std::string& doubt) const;
  Status count(Session& session, uint64_t head, uint64_t& counted) const;
  std::string head_key(uint64_t head) const { return keys_.key(table(0), 'h', head); }
  std::string row_key(uint64_t head, uint64_t i) const {
    return keys_.key(table(0), 'r', head << 32 | i);
  }

  const HeadsOptions options_;
  const HotKeys keys_;
};

}  // namespace rdmacc
