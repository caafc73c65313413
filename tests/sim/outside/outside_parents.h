#pragma once
#include <map>
#include <vector>

#include "engine/workloads/settings.h"
#include "tests/sim/door/hot_keys.h"

namespace rdmacc {

struct OutsideParentsOptions {
  uint32_t parents = 4;
  uint32_t children = 12;
  uint32_t hot_groups = 2;  // of a node's first 16 that children fall into
  uint32_t history = kDefaultHistory;
  // For tests of the test: what deletes a parent does without need_current_reads(), or without
  // check_reads(); what defines something does without the table's lock.
  enum class LeftOut : uint8_t { kNothing, kNeed, kCheck, kLock } leaves_out = LeftOut::kNothing;
};

// Rows (children) that refer to something outside of the engine (parents), as rows of an rdmacc
// table refer by a foreign key to rows of PostgreSQL's own: a parent has a lock in its own memory.
// What makes a child of it holds that shared until its transaction has ended; what deletes the
// parent holds it exclusively, searches the table for children, by a scan, by keys or by an
// ordered index, and asks Session::check_reads() whether what it read is current. Then the parent
// is gone, whatever becomes of the transaction. There must never be a child without its parent.
//
// The table has such a lock, too: what writes holds it shared, and what defines something, as
// CREATE INDEX does, holds it exclusively and scans quietly (ScanMode::kQuiet). It must have the
// rows that a serializable scan has.
class OutsideParents : public Workload {
 public:
  enum Kind : uint32_t { kChange, kDelete, kDefine, kKinds };

  explicit OutsideParents(const OutsideParentsOptions& options)
      : options_(options), keys_(options.hot_groups), parents_(options.parents) {}

  const char* name() const override { return "outside"; }
  std::vector<TableSpec> table_specs() const override;
  bool is_ordered_index(size_t number) const override { return number == kIndex; }
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool knows(const TxnInputs& inputs) const override { return inputs.kind < kKinds; }
  Status check(Session& session, const TxnOptions& options, int64_t,
               std::string& violation) const override;

  // A coordinator has died: what its sessions had begun to commit is left to the nodes.
  void release_all_of(const Scheduler& coordinator);

  uint64_t deaths() const { return deaths_; }
  uint64_t births() const { return births_; }  // attempts that made a child
  uint64_t definitions() const { return definitions_; }

 private:
  enum Table : size_t { kRows, kIndex, kTables };

  // A session's until that begins another transaction, or another attempt, or dies with its
  // coordinator.
  struct Holder {
    const Session* session = nullptr;
    const Scheduler* coordinator = nullptr;
  };
  struct Lock {
    Holder exclusive;
    std::map<const Session*, const Scheduler*> sharers;
    uint32_t waiting = 0;  // for it exclusively: no session comes to share it meanwhile
  };
  struct Parent {
    bool alive = true;
    uint64_t life = 0;  // which one; rises with each
    Lock lock;
  };
  struct Child {
    bool there = false;
    uint64_t parent = 0, life = 0;
  };

  void release(const Session& session) const;
  bool take(Session& session, Lock& lock, bool exclusive) const;
  Status change(Session& session, Random& random, TxnEffect& effect) const;
  Status remove_parent(Session& session, Random& random) const;
  Status define(Session& session, Random& random, TxnEffect& effect) const;
  Status read(Session& session, uint64_t number, Child& child) const;
  Status move(Session& session, uint64_t number, const Child& from, const Child& to) const;
  // Whether a row refers to the parent.
  Status search(Session& session, uint64_t parent, Random& random, bool& found) const;
  std::string key(uint64_t child) const { return keys_.key(table(kRows), 'c', child); }

  const OutsideParentsOptions options_;
  const HotKeys keys_;
  mutable std::vector<Parent> parents_;
  mutable Lock writing_;
  mutable uint64_t deaths_ = 0, births_ = 0, definitions_ = 0;
};

}  // namespace rdmacc
