#pragma once
#include "engine/workloads/settings.h"
#include "tests/sim/door/hot_keys.h"
#include "tests/sim/door/structure_ledger.h"

namespace rdmacc {

struct DoorOptions {
  uint32_t keys = 12;               // that come and go in each table
  uint32_t hot_groups = 1;          // of a node's first 16 that new rows fall into
  uint32_t rows_max = 40;           // of one load
  uint32_t operations_max = 8;      // of one transaction
  uint32_t read_only_percent = 20;  // of the transactions
  uint32_t large_percent = 0;       // of the rows: of several log segments, some of several pages
  uint32_t visit_percent = 12;      // of the transactions that are not read-only
  uint32_t scan_percent = 0;        // of the operations, besides those that are drawn
  uint32_t lock_percent = 0;        // likewise: rows are locked early, and locks waited for
  bool long_keys = false;           // some that take a block (hot_keys.h)
  uint32_t history = kDefaultHistory;
};

// Transactions that call every public operation of a Session, on two tables that grow by loads in
// the middle of the traffic, so that their groups split again and again, and on a third one that is
// dropped and made again beside them (door_surroundings.h). A fourth is filled until a node's
// memory is full. What is under way beside which change of an index is counted.
constexpr uint32_t kDoorRecordSize = 64;

class Door : public Workload {
 public:
  enum Kind : uint32_t { kAll, kRowsAlone, kReadOnly, kVisit, kKinds };
  enum Table : size_t { kFirst, kSecond, kFiller, kTables };

  Door(const DoorOptions& options, StructureLedger* ledger)
      : options_(options), keys_(options.hot_groups, options.long_keys), ledger_(ledger) {}

  const char* name() const override { return "door"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  bool grows() const override { return true; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Those of rows alone, if their keys are short.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  bool knows(const TxnInputs& inputs) const override { return inputs.kind < kKinds; }
  Status check(Session&, const TxnOptions&, int64_t, std::string& violation) const override;

  // As Workload::attempt, told to the ledger. A proper end as well: the user cancels, the visited
  // table is gone.
  Status attempt_observed(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                          TxnEffect& effect) const;
  // The transaction has committed: its rows are known to those that are drawn from now on.
  void acknowledge(const TxnInputs& inputs, const TxnEffect& effect);

  // ---- The table that is dropped; kNoTable while there is none.
  static TableSpec visited_spec(uint32_t history, uint32_t record_size = kDoorRecordSize);
  TableId visited() const { return visited_; }
  void set_visited(TableId table);
  bool was_visited(TableId table) const;
  TableId filler() const { return table(kFiller); }
  // One that crowds with those of the transactions.
  std::string hot_key(TableId table, char prefix, uint64_t number) const {
    return keys_.key(table, prefix, number);
  }
  uint32_t history() const { return options_.history; }
  StructureLedger* ledger() const { return ledger_; }

 private:
  const DoorOptions options_;
  const HotKeys keys_;
  StructureLedger* const ledger_;
  std::vector<uint64_t> loaded_;  // numbers of committed loads
  TableId visited_ = kNoTable;
  std::vector<TableId> all_visited_;
};

// An operation on everything that a transaction may have touched, while it lives.
class DoorEnd {
 public:
  DoorEnd(const Door& door, DoorOp op)
      : first_(door.ledger(), op, door.tables()[Door::kFirst]),
        second_(door.ledger(), op, door.tables()[Door::kSecond]),
        visited_(door.ledger(), op, door.visited()) {}

 private:
  const StructureLedger::Operation first_, second_, visited_;
};

}  // namespace rdmacc
