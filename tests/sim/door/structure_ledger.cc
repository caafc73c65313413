#include "tests/sim/door/structure_ledger.h"

#include <algorithm>
#include <cstdio>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr std::array<const char*, kDoorOps> kOpNames = {"get",
                                                        "get_many",
                                                        "read_batch",
                                                        "try_lock",
                                                        "scan",
                                                        "scan, no wait",
                                                        "scan, skip",
                                                        "check_reads",
                                                        "unvalidated_read",
                                                        "put",
                                                        "insert",
                                                        "insert_unchecked",
                                                        "remove",
                                                        "amend",
                                                        "savepoint",
                                                        "rollback_to",
                                                        "release",
                                                        "read_own_sets",
                                                        "note_wide_read",
                                                        "draw_number",
                                                        "cancel",
                                                        "abort_on_conflict",
                                                        "commit",
                                                        "abort",
                                                        "prepare",
                                                        "commit_prepared",
                                                        "abort_prepared",
                                                        "execute_procedure"};
constexpr std::array<const char*, kStructureChanges> kChangeNames = {
    "split", "root growth", "chain", "clean", "unlink", "drop", "full", "forget", "recycle"};

void for_each_cell(auto visit) {
  for (size_t op = 0; op < kDoorOps; ++op) {
    for (size_t change = 0; change < kStructureChanges; ++change) {
      visit(static_cast<DoorOp>(op), static_cast<StructureChange>(change));
    }
  }
}

}  // namespace

const char* name_of(DoorOp op) { return kOpNames[static_cast<size_t>(op)]; }
const char* name_of(StructureChange change) { return kChangeNames[static_cast<size_t>(change)]; }

void StructureCounts::add(std::span<const uint64_t> cells) {
  CHECK(cells.size() == cells_.size());
  for (size_t i = 0; i < cells.size(); ++i) cells_[i] += cells[i];
}

const char* StructureCounts::impossible(DoorOp op, StructureChange change) {
  const bool versions = change == StructureChange::kUnlink || change == StructureChange::kForget;
  if (op == DoorOp::kProcedure && versions) {
    return "old versions are MVCC's, procedures CALVIN's";
  }
  if (op == DoorOp::kProcedure && change == StructureChange::kFull) {
    return "CALVIN's order waits for memory that another transaction would have to free";
  }
  return nullptr;
}

bool StructureCounts::rare(DoorOp op, StructureChange change) {
  // They end their transaction at once, or are the fate of few; beside a drop, where most
  // transactions are, they are not rare.
  if (op == DoorOp::kAbortOnConflict) return true;
  return (op == DoorOp::kAbortPrepared || op == DoorOp::kCancel) &&
         change != StructureChange::kDrop;
}

std::string StructureCounts::zeros() const {
  std::string text;
  for_each_cell([&](DoorOp op, StructureChange change) {
    if (at(op, change) != 0 || impossible(op, change) != nullptr || rare(op, change)) return;
    text += (text.empty() ? "" : "; ") + std::string(name_of(op)) + " beside " + name_of(change);
  });
  return text;
}

std::string StructureCounts::table() const {
  char cell[64];
  std::snprintf(cell, sizeof(cell), "%-18s", "operation beside");
  std::string text = cell;
  for (const char* change : kChangeNames) {
    std::snprintf(cell, sizeof(cell), " %11s", change);
    text += cell;
  }
  for_each_cell([&](DoorOp op, StructureChange change) {
    if (change == StructureChange{}) {
      std::snprintf(cell, sizeof(cell), "\n%-18s", name_of(op));
      text += cell;
    }
    const std::string count = std::to_string(at(op, change));
    const bool none = at(op, change) == 0 && impossible(op, change) != nullptr;
    std::snprintf(cell, sizeof(cell), " %11s", none ? "-" : count.c_str());
    text += cell;
  });
  return text + "\n";
}

StructureLedger::Operation::Operation(StructureLedger* ledger, DoorOp op, TableId table)
    : ledger_(ledger), op_(op), table_(table) {
  if (ledger == nullptr) return;
  place_ = ledger->operations_.insert(ledger->operations_.end(), this);
  for (Change& change : ledger->changes_) {
    if (change.is_of(table)) ++change.beside[static_cast<size_t>(op)];
  }
}

StructureLedger::Operation::~Operation() {
  if (ledger_ != nullptr) ledger_->operations_.erase(place_);
}

uint64_t StructureLedger::begins(StructureChange change, TableId table) {
  Change& begun = changes_.emplace_back(Change{++last_name_, change, table});
  for (const Operation* operation : operations_) {
    if (begun.is_of(operation->table_)) ++begun.beside[static_cast<size_t>(operation->op_)];
  }
  return begun.name;
}

void StructureLedger::ends(uint64_t name, bool happened) {
  const auto ended = std::find_if(changes_.begin(), changes_.end(),
                                  [name](const Change& change) { return change.name == name; });
  CHECK(ended != changes_.end());
  for (size_t op = 0; happened && op < kDoorOps; ++op) {
    counts_.at(static_cast<DoorOp>(op), ended->change) += ended->beside[op];
  }
  changes_.erase(ended);
}

}  // namespace rdmacc
