#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/session.h"
#include "engine/workloads/key_declaration.h"
#include "rdma/base/random.h"

// What a benchmark or a test runs: tables and rows to load, transactions to draw and attempt, and
// what must hold afterwards. Knows the engine through its session alone. One object is shared by
// all workers of a process and is constant once the tables are there, so any thread may use it.
// Objects made from the same settings do the same, so that another process can carry out what
// this one drew (registry.h).

namespace rdmacc {

// The front end to which a workload's tables belong (TableSpec); zeros: none, as natively.
struct TableOwner {
  uint64_t system_id = 0;
  uint32_t database = 0;
  bool given() const { return system_id != 0; }
};

// What a workload has to know of the cluster that it runs on.
struct WorkloadCluster {
  NodeId nodes = 1;
  // Time passes only for coroutines that sleep: a loop that waits for the clock would never end.
  bool virtual_time = false;
};

constexpr uint32_t kTxnValuesMax = 32;

// The inputs of one transaction, drawn once, so that every attempt does the same. Flat, so that
// they can be sent: the kind, the count, and that many values.
struct TxnInputs {
  uint32_t kind = 0;
  uint32_t count = 0;  // of the values that mean something
  std::array<uint64_t, kTxnValuesMax> values{};

  void add(uint64_t value) {
    CHECK(count < kTxnValuesMax);
    values[count++] = value;
  }
};
static_assert(std::is_trivially_copyable_v<TxnInputs> &&
              sizeof(TxnInputs) == 8 + kTxnValuesMax * 8);

// What one finished transaction did.
struct TxnEffect {
  int64_t delta = 0;      // change of the quantity that the invariant speaks of, if it commits
  bool rollback = false;  // the user wants to abort: a proper end, not to be tried again
  // What the transaction saw that only one that cannot commit any more may see (an optimistic
  // protocol notices at the end that another was there first); empty if nothing.
  std::string doubt;
  bool declared = false;  // it ran as a procedure on keys declared beforehand (procedures.h)
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual const char* name() const = 0;
  // The text that the registry made it from; empty: it was made in another way, or by default.
  const std::string& settings() const { return settings_; }
  void set_settings(std::string settings) { settings_ = std::move(settings); }

  // ---- Tables. In a process that did not create them, bind_tables() takes the ids that tables()
  // gave there.
  virtual std::vector<TableSpec> table_specs() const = 0;
  // From a coroutine, once, before anything else. Those that an earlier run of the same owner has
  // left are dropped.
  Status create_tables(Session& session, TableOwner owner = {});
  // All that can be dropped; the first that cannot is what is wrong.
  Status drop_tables(Session& session) const;
  std::span<const TableId> tables() const { return tables_; }
  // Whether the table of that place holds the nodes of an ordered index (engine/index).
  virtual bool is_ordered_index(size_t) const { return false; }
  void bind_tables(std::span<const TableId> tables);  // CHECKs that there is one for each spec

  // ---- Rows. Loads the `part`-th of `parts` shares of the rows; parts may be loaded by several
  // coroutines at once.
  virtual Status load(Session& session, const TxnOptions& options, uint64_t part,
                      uint64_t parts) = 0;
  // Into so many parts loading is best divided: between two of them an interrupt is noticed.
  virtual uint64_t load_parts() const { return 1; }
  // Transactions add rows without end: a second run on the same tables is not like the first.
  virtual bool grows() const { return false; }

  // ---- Transactions
  virtual TxnInputs draw(Random& random) const = 0;
  // The logic of one transaction, in a transaction that has begun and that the caller ends. It
  // depends on the inputs and on the rows that it reads, on nothing else. When it is not ok the
  // transaction is to be aborted.
  virtual Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const = 0;
  // Every key that execute() may touch, known before it runs; false: not known.
  virtual bool declare(const TxnInputs&, KeyDeclaration&) const { return false; }
  // As declare(), where rows decide which keys: reads those in a transaction of its own, and
  // declares them, too. `known` false: nothing is declared.
  virtual Status survey(Session&, const TxnOptions&, const TxnInputs&, KeyDeclaration&,
                        bool& known) const {
    known = false;
    return Status();
  }
  // Are these inputs that draw() might give, so that execute() can run on them? For those that
  // came from another process.
  virtual bool knows(const TxnInputs& inputs) const = 0;
  // One attempt, from begin() to commit() or to the user's own rollback. When it is not ok the
  // transaction has been aborted; kAborted: try again with the same inputs. kCorrupt: it may also
  // have committed, with a doubt.
  Status attempt(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                 TxnEffect& effect) const;

  // ---- One attempt at checking the invariant once nothing else runs. `delta` is the sum over
  // all committed transactions. An empty violation: it holds.
  virtual Status check(Session& session, const TxnOptions& options, int64_t delta,
                       std::string& violation) const = 0;

 protected:
  // One more, that was made by a transaction.
  void add_table(TableId table) { tables_.push_back(table); }
  TableId table(size_t number) const {
    CHECK(number < tables_.size());
    return tables_[number];
  }

 private:
  std::vector<TableId> tables_;
  std::string settings_;
};

// A table of the native drivers: its number, inline record bytes and old versions.
TableSpec native_table(uint32_t number, uint64_t record_size, uint32_t history);

// Ends a transaction after `status`: aborts it when that is an error. Gives the status back.
Status abort_unless_ok(Session& session, Status status);

// What a transaction says of rows that other rows have led it to, or that do not fit those:
// kCorrupt only if it has read them all at one moment, else kAborted. Gives any other status back.
Status unless_it_lost(Session& session, Status status);

// Repeats `attempt` while it is kAborted; gives up after kAttemptsMax. The pauses between, up to 4
// ms, are random: two coroutines of one thread that only yield to each other lose in turns for
// ever.
constexpr uint32_t kAttemptsMax = 10'000;
Status retry_aborted(Scheduler& scheduler, const std::function<Status()>& attempt);

// Visits every row of a table in a transaction that has begun; stops at the first error.
Status for_each_row(Session& session, TableId table,
                    const std::function<Status(const RowView& row)>& visit, ScanWants wants = {});

}  // namespace rdmacc
