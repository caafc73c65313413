#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "tests/sim/door/door.h"

namespace rdmacc {

// One attempt of one of Door's transactions; everything it does follows from its inputs and from
// what it sees. Rows begin with their key and go on with one letter: a torn or misplaced one is
// noticed (kCorrupt), and so is a transaction that does not see its own writes.
class DoorTransaction {
 public:
  struct Surroundings {
    const DoorOptions& options;
    const HotKeys& keys;
    std::array<TableId, 2> tables;
    TableId visited;
    StructureLedger* ledger;  // nullptr: nothing is counted
  };
  using Place = std::pair<TableId, std::string>;

  DoorTransaction(Session& session, const Surroundings& around, const TxnInputs& inputs)
      : session_(session),
        around_(around),
        inputs_(inputs),
        random_(inputs.values[0]),
        shared_(inputs.values[0] ^ 0x6E57) {}

  Status run();
  // See TxnEffect.
  const std::string& doubt() const { return doubt_; }
  // Keys that it writes, or would if other rows were there.
  const std::set<Place>& written() const { return written_; }
  bool rolls_back() const { return rolls_back_; }
  // The number of a load of its own; its rows are there if it commits.
  static uint64_t load_number(const TxnInputs& inputs) { return inputs.values[1]; }
  static size_t table_of_load(uint64_t number) { return number >> 8 & 1; }
  static constexpr uint64_t kRowsOfLoadMin = 4, kRowsOfLoadMax = 200;

 private:
  using Noted = std::optional<std::string>;  // a row, or none

  Status operate();
  Status operate_on_rows(uint64_t drawn);
  Status operate_on_all(uint64_t drawn);
  Status visit();

  Place draw_place();
  std::string row_for(std::string_view key);
  Status check_row(const Place& place, const RowView& view) const;

  Status get(const Place& place);
  Status get_many();
  Status look(DoorOp op, const Place& place);
  Status load_rows();
  Status write(DoorOp op, const Place& place);
  Status upsert(const Place& place);
  Status lock(const Place& place);
  // door_locks.cc
  Status patiently(const std::function<Status()>& operation);
  Status lock_early(const Place& place);
  Status use_locked(const Place& place);
  Status let_go();
  Status scan(TableId table, DoorOp op);
  // door_guests.cc
  Status begin_with_guest();
  Status scan_with_guest(TableId table);
  Status scan_part(Session& session, ScanCursor& cursor, TableId table, std::set<std::string>& seen,
                   bool& more);
  Status write_scanned(TableId table, const std::vector<RowView>& batch);
  Status save();
  Status end_level(TableId table);
  Status check_reads(TableId table);
  Status give_up();

  // From now until the transaction ends.
  void note(DoorOp op, TableId table) { noted_.emplace_back(around_.ledger, op, table); }

  Session& session_;
  const Surroundings& around_;
  const TxnInputs& inputs_;
  Random random_;
  Random shared_;  // of scans; apart, so that all else of a seed stays as it was
  bool loaded_ = false, rolls_back_ = false;
  std::map<Place, Noted> own_;
  std::set<Place> written_;
  struct Savepoint {
    uint32_t level;
    std::map<Place, Noted> before;
  };
  std::vector<Savepoint> savepoints_;
  std::deque<StructureLedger::Operation> noted_;
  std::string doubt_;
};

}  // namespace rdmacc
