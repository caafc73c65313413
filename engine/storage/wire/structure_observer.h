#pragma once
#include "engine/storage/layout/tuple.h"

// For code that has to know when the owner changes the form of a table's index: tests, that count
// what happens beside such changes. Nothing here is called on the way of a transaction's verbs.

namespace rdmacc {

enum class StructureChange : uint8_t {
  kSplit,       // from the group's lock to its unlocking
  kRootGrowth,  // the root array is doubled; does not yield
  kChain,       // buckets are chained behind one; does not yield
  kClean,       // entries that moved leave their group
  kUnlink,      // a tombstone leaves its group
  kDrop,        // a table's parts are given back
  kFull,        // there was no memory for the table; does not yield
  kForget,      // a row's block of old versions goes
  kRecycle,     // empty pages become something else, from their withdrawal on: of all tables
};
constexpr size_t kStructureChanges = 9;

class StructureObserver {
 public:
  virtual ~StructureObserver() = default;
  // A change begins; what is returned names it. kNoTable: every table's.
  virtual uint64_t begins(StructureChange change, TableId table) = 0;
  // It has ended; not `happened`: it came to nothing. Must not throw.
  virtual void ends(uint64_t name, bool happened) = 0;
};

// The time of one change. The owner may die in it: then it has not happened.
class StructureSpan {
 public:
  StructureSpan(StructureObserver* observer, StructureChange change, TableId table)
      : observer_(observer), name_(observer == nullptr ? 0 : observer->begins(change, table)) {}
  ~StructureSpan() {
    if (observer_ != nullptr) observer_->ends(name_, happened_);
  }
  StructureSpan(const StructureSpan&) = delete;
  StructureSpan& operator=(const StructureSpan&) = delete;
  void happened() { happened_ = true; }

 private:
  StructureObserver* const observer_;
  const uint64_t name_;
  bool happened_ = false;
};

// One that takes no time.
inline void note_change(StructureObserver* observer, StructureChange change, TableId table) {
  StructureSpan(observer, change, table).happened();
}

}  // namespace rdmacc
