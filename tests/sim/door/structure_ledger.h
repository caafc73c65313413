#pragma once
#include <array>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "engine/storage/wire/structure_observer.h"

namespace rdmacc {

// Every public operation of a Session that a transaction may call. It is under way from its call
// until its transaction has ended: what it has read or noted must hold then. Those that end a
// transaction are under way during the call, outcomes of prepared ones from the decision on.
enum class DoorOp : uint8_t {
  kGet,
  kGetMany,
  kReadBatch,
  kTryLock,
  kScan,
  kScanNoWait,
  kScanSkipLocked,
  kCheckReads,
  kUnvalidatedRead,
  kPut,
  kInsert,
  kInsertUnchecked,
  kRemove,
  kAmend,
  kSavepoint,
  kRollbackTo,
  kRelease,
  kReadOwnSets,
  kWideRead,
  kDraw,
  kCancel,
  kAbortOnConflict,
  kCommit,
  kAbort,
  kPrepare,
  kCommitPrepared,
  kAbortPrepared,
  kProcedure,
};
constexpr size_t kDoorOps = 28;
const char* name_of(DoorOp op);
const char* name_of(StructureChange change);

// How often each operation was under way on a table while that table's index was changing: pairs of
// one operation and one change whose times overlap. Counts of several runs can be added.
class StructureCounts {
 public:
  uint64_t& at(DoorOp op, StructureChange change) { return cells_[index(op, change)]; }
  uint64_t at(DoorOp op, StructureChange change) const { return cells_[index(op, change)]; }
  void add(std::span<const uint64_t> cells);
  std::span<const uint64_t> cells() const { return cells_; }

  // Does it have a reason to be zero? nullptr: it can happen.
  static const char* impossible(DoorOp op, StructureChange change);
  // It can happen, but so seldom that thousands of runs may pass without: a short call beside a
  // moment's change.
  static bool rare(DoorOp op, StructureChange change);
  // "scan beside split; …": cells that can happen, are not rare, and are zero.
  std::string zeros() const;
  std::string table() const;

 private:
  static size_t index(DoorOp op, StructureChange change) {
    return static_cast<size_t>(op) * kStructureChanges + static_cast<size_t>(change);
  }
  std::array<uint64_t, kDoorOps * kStructureChanges> cells_{};
};

// Counts in one run; the simulator's one thread.
class StructureLedger : public StructureObserver {
 public:
  // One operation on one table, under way as long as the object lives. Without a ledger it is none.
  class Operation {
   public:
    Operation(StructureLedger* ledger, DoorOp op, TableId table);
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    friend class StructureLedger;
    StructureLedger* const ledger_;
    const DoorOp op_;
    const TableId table_;
    std::list<const Operation*>::iterator place_;
  };

  uint64_t begins(StructureChange change, TableId table) override;
  void ends(uint64_t name, bool happened) override;

  const StructureCounts& counts() const { return counts_; }

 private:
  struct Change {
    uint64_t name;
    StructureChange change;
    TableId table;
    std::array<uint32_t, kDoorOps> beside{};

    bool is_of(TableId each) const { return table == kNoTable || table == each; }
  };

  StructureCounts counts_;
  std::list<const Operation*> operations_;  // under way
  std::list<Change> changes_;               // under way
  uint64_t last_name_ = 0;
};

}  // namespace rdmacc
