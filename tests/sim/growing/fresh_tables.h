#pragma once
#include "engine/workloads/settings.h"
#include "tests/sim/door/hot_keys.h"

namespace rdmacc {

struct FreshTablesOptions {
  uint32_t cells = 4;        // that makers and users read and write
  uint32_t hot_groups = 2;   // of a node's first 16 that a table's rows fall into
  uint32_t batches_max = 4;  // of a load
  uint32_t rows_max = 40;    // of a batch
  uint32_t history = kDefaultHistory;
};

// Tables that transactions make and fill before they commit (Session::load_rows), beside
// transactions that know of a table as soon as, and only if, its maker has committed: they do not
// learn it by the protocol, as sessions of an SQL server learn of tables by the catalog. Both read
// and write cells of a common table, so that a row of the load and a cell of the same maker tell
// one from the other's time. Some makers make an ordered index, too.
class FreshTables : public Workload {
 public:
  enum Kind : uint32_t { kMake, kUse, kCells, kKinds };

  explicit FreshTables(const FreshTablesOptions& options)
      : options_(options), keys_(options.hot_groups) {}

  const char* name() const override { return "fresh"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  bool grows() const override { return true; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool knows(const TxnInputs& inputs) const override { return inputs.kind < kKinds; }
  Status check(Session&, const TxnOptions&, int64_t, std::string& violation) const override;

  // Once nothing else runs: tables whose makers have committed are tables of this workload from
  // then on, and the others are dropped, as their makers would.
  Status settle(Session& session, const TxnOptions& options);
  uint64_t loads() const { return loads_; }  // before the commit

 private:
  Status make(Session& session, Random& random, std::string& doubt) const;
  Status use(Session& session, Random& random, std::string& doubt) const;
  Status change_cell(Session& session, Random& random, uint64_t* value) const;
  Status fill(Session& session, TableId made, uint64_t value, Random& random,
              uint64_t* rows_filled) const;
  Status count_quietly(Session& session, TableId made, uint64_t rows, std::string& doubt) const;
  Status fill_again(Session& session, TableId made, Random& random) const;
  Status make_index(Session& session, size_t number, Random& random, std::string& doubt) const;
  Status change_rows(Session& session, TableId of, Random& random, std::string& doubt) const;
  Status look_through(Session& session, TableId of, std::string& doubt) const;
  Status use_index(Session& session, std::string_view announced, std::string& doubt) const;
  std::string cell(uint64_t number) const { return keys_.key(table(0), 'c', number); }
  std::string announcement(uint64_t number) const { return keys_.key(table(0), 't', number); }

  const FreshTablesOptions options_;
  const HotKeys keys_;
  mutable std::vector<TableId> made_;     // by all attempts: announcement(i) is that of made_[i]
  mutable std::vector<TableId> indexes_;  // of their makers, or kNoTable
  mutable uint64_t loads_ = 0;
};

}  // namespace rdmacc
