#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/read_batch.h"
#include "engine/api/row_view.h"
#include "engine/cluster/partition_map.h"
#include "engine/coordinator.h"
#include "engine/log/in_doubt.h"
#include "engine/storage/wire/lock_holds.h"
#include "engine/storage/wire/storage_client.h"
#include "engine/txn/rule/outcome.h"
#include "engine/txn/rule/stage.h"
#include "engine/txn/stages/row_lock.h"
#include "engine/txn/transaction/logged_write.h"
#include "engine/txn/transaction/restart.h"
#include "engine/txn/transaction/worker_stats.h"
#include "rdma/base/check.h"
#include "rdma/rpc/worker.h"

// The engine's public interface. A Coordinator is what one worker thread (a bench thread, a
// PostgreSQL backend) needs to run transactions; a Session runs one transaction at a time on it.
// Methods of Session that touch the engine are called from a coroutine of the worker, and yield
// while verbs are in flight. Without one (on PostgreSQL's main stack) SessionPump runs them.
//
// A Status of Code::kAborted (reason_of(status) says why), kUnavailable, kCancelled, kTimeout or
// kNoSpace means that the transaction cannot go on: call abort(), then perhaps try again.
// kDuplicateKey, kNotFound, kTooLarge and kInvalidArgument leave it as it was; kWriteSetFull may
// come in the midst of an operation: behind rollback_to() the transaction goes on, too.
//
// A transaction that was aborted and is begun again, with the same first access, is another attempt
// of the same (engine/txn/transaction/restart.h): it keeps its age where the protocol goes by age,
// and after some lost scans it asks for exclusive gate mode, so that it ends however much others
// write.
//
// Isolation is always serializable. Keys and rows are bytes; keys are unique per table.

namespace rdmacc {

class PostedLoad;
class Transaction;
class DetachedTransaction;
class RowSource;
struct KeyState;
struct OrderedRequest;
struct OrderedOutcome;
struct HistoryEvent;

struct TxnOptions {
  Protocol protocol = Protocol::kOcc;
  StagePlan plan;
  LockMode lock_mode = LockMode::kExclusive;
  uint64_t gate_timeout_us = 10'000'000;
  // Asks for exclusive gate mode from the start, so that it meets no conflict: for a long reader,
  // for which all others wait (engine/cluster/gate.h, G4, says how long at most).
  bool exclusive = false;
};

// The node that stores a key in a cluster of `nodes` nodes (RowView.node, known beforehand).
NodeId home_node_of(TableId table, std::string_view key, NodeId nodes);

constexpr uint32_t kEveryCommand = 0xFFFFFFFF;

class ScanCursor;
struct ScanCursorDelete {
  void operator()(ScanCursor* cursor) const;
};
// Belongs to the transaction: freed before it ends, or right after (unused).
using ScanHandle = std::unique_ptr<ScanCursor, ScanCursorDelete>;

class Session {
 public:
  explicit Session(Coordinator& coordinator);
  // Runs on rows that were given beforehand, in a transaction that has begun and that its caller
  // ends: only methods under "Rows" but scans, those under "Commands and savepoints" and
  // scheduler() may be called. For procedures of deterministic protocols. Not owned.
  explicit Session(DetachedTransaction& detached);
  ~Session();  // the transaction must have ended
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // ---- Transactions
  // Notes the options; the gate is entered and the ctts drawn at the first engine access.
  Status begin(const TxnOptions& options);
  bool active() const;
  // Commits, or aborts and says why. After kUnavailable the outcome may be unknown only if
  // commit_outcome_unknown() says so; otherwise the transaction is aborted.
  Status commit();
  void abort();  // releases everything; always succeeds
  // Two phases, for a transaction that is decided outside the engine: prepare() does all that may
  // fail and leaves it prepared under `gtid`; then commit_prepared(), or abort(). Not ok: aborted,
  // and why, but for kInvalidArgument (the protocol cannot prepare), which leaves it as it was. One
  // that has written nothing is committed by prepare(): active() is false then. A transaction whose
  // coordinator dies while it is prepared is in doubt: it keeps its locks until decide() is told.
  //
  // Only what prepare() has said ok of may be committed, here or by decide(gtid, true). After an
  // error the transaction is aborted, whatever commit_outcome_unknown() says: its locks are
  // released (unless the coordinator has left it to resolution), so that others may write what it
  // would have written; it may begin again, under another gtid. in_doubt() may list it all the
  // same, long after: a lost node may keep a copy of its log that could not be made void. Such a
  // one, and one whose coordinator died within prepare(), is decided by decide(gtid, false). So
  // what decides takes all that it does not know to be prepared for aborted.
  Status prepare(Gtid gtid);
  bool prepared() const;
  // What a prepared transaction writes, for a log of its caller's: views that live until it ends.
  std::vector<LoggedWrite> prepared_writes();
  // The transaction is committed in any case and ends here; not ok: nodes were lost, and what could
  // not be done now is done once this coordinator has left.
  Status commit_prepared();
  // Of the whole cluster.
  Result<InDoubtList> in_doubt();
  // kNotFound: no transaction of that name is in doubt. Rows and locks follow soon.
  Status decide(Gtid gtid, bool commit);
  // One whole transaction under a deterministic protocol: a procedure that the nodes know
  // (engine/protocols/calvin/procedure.h), with its inputs and the keys that it may read and write.
  // Keys that it writes are read as well, behind the others. It never loses to another one.
  // kInvalidArgument: the protocol is not deterministic, or what the nodes say of the procedure.
  Status execute_procedure(const TxnOptions& options, OrderedRequest request,
                           OrderedOutcome& outcome);
  // Of the last commit() or abort(): a node was lost when it may or may not have been logged.
  bool commit_outcome_unknown() const { return outcome_unknown_; }
  // Ends every wait of this session with kCancelled; cleared by begin(), or with false once the
  // wait has ended without. Callable anytime on the session's thread.
  void cancel(bool on = true) { cancelled_ = on; }

  // ---- Rows. `visible_before`: own writes of commands >= it are not seen (see set_command).
  Status get(TableId table, std::string_view key, RowView& out,
             uint32_t visible_before = kEveryCommand);
  // All keys in one batch of rounds; out[i] belongs to keys[i]. `to_write`: they are going to be
  // written, so that rows which others have locked with try_lock() are waited for; what only reads
  // passes them, under protocols that do not lock what they read.
  Status get_many(TableId table, std::span<const std::string_view> keys, std::span<RowView> out,
                  uint32_t visible_before = kEveryCommand, bool to_write = false);
  // The same of rows that are most likely read this once, as those of a range: where the protocol
  // allows it no more is kept of each than that it was read. Views, of keys as of rows, live as
  // long as the keys that were given and until the batch is used again.
  Status read_batch(TableId table, std::span<const std::string_view> keys, ReadBatch& batch,
                    std::span<RowView> out, uint32_t visible_before = kEveryCommand);
  Status put(TableId table, std::string_view key, std::string_view row);     // or kNotFound
  Status insert(TableId table, std::string_view key, std::string_view row);  // or kDuplicateKey
  // For keys that the caller knows to be new (hidden row ids): the absent key is not checked.
  Status insert_unchecked(TableId table, std::string_view key, std::string_view row);
  // Many of one table, looked up in one batch of rounds; unchecked without `check_absent`. In their
  // order: after kDuplicateKey those before keys[*duplicate] are written, and no others.
  Status insert_many(TableId table, std::span<const std::string_view> keys,
                     std::span<const std::string_view> rows, bool check_absent, size_t* duplicate);
  Status remove(TableId table, std::string_view key);  // or kNotFound
  // put() and remove() of a row that the transaction has read, or that its scan has just returned:
  // without a verb, and so outside of a coroutine as well. nullopt: it is none of these, or others
  // of the transaction's rows are on their way, and nothing has happened.
  std::optional<Status> put_known(TableId table, std::string_view key, std::string_view row);
  std::optional<Status> remove_known(TableId table, std::string_view key);
  // As put(); a write of the same command and savepoint level is replaced, whose views so end. For
  // rows that one command may change a thousand times.
  Status amend(TableId table, std::string_view key, std::string_view row);
  // Reads a key and, for an exclusive or a shared lock, locks its row until the transaction ends,
  // without waiting for its holder (kBusy, and the transaction goes on). Deterministic protocols
  // lock nothing: kGot means little there. A lock alone is no write: it keeps other locks and
  // writes out until the end (a shared one no other shared ones), and under protocols that lock
  // what they read the reads, too.
  Result<RowLock> try_lock(TableId table, std::string_view key, RowLockMode mode);
  // After kBusy, or an operation that only a lock of another transaction has ended
  // (is_held_by_another()): whose, as far as it is known, else 0. The transaction may wait for it
  // and go on with try_lock() of the key, or scan_next().
  uint64_t held_by() const;

  // Every row of a table, each once, in no order, phantom-safe. Own writes made after the scan
  // was opened may or may not be seen unless `visible_before` excludes them.
  // `shared_walk`: a word, 0 at first or as share_scan() has left it, in memory that processes may
  // share. Scans of a table by one transaction and its guests that have the same one get each row
  // once among them all.
  Result<ScanHandle> scan(TableId table, uint32_t visible_before = kEveryCommand,
                          ScanMode mode = ScanMode::kSerializable, ScanWants wants = {},
                          uint64_t* shared_walk = nullptr);
  // Before guests begin such scans, and after host(): decides how these walk (`shared_walk`, which
  // is 0, may be another word then), and reads what is read once for all of them. After a lock of
  // another transaction (is_held_by_another()) it may be asked for once more.
  Status share_scan(TableId table, uint64_t* shared_walk);
  // What the word was then, for the same scans from their beginning.
  static uint64_t shared_walk_anew(uint64_t shared_walk);
  // The next rows; an empty batch is the end. Views live until the next call.
  Status scan_next(ScanCursor& cursor, std::vector<RowView>& batch);
  // The same for a scan that wants to count: how many rows the batch has; 0 is the end.
  Status scan_count(ScanCursor& cursor, uint64_t& rows);
  // Before an error is raised because rows do not fit together (a unique value that is there
  // twice): kAborted when they were not read at one moment, so that the transaction has lost.
  Status check_reads();
  // From here on check_reads() says, under every protocol, whether what is read after this is what
  // is there, and not what was at the transaction's own time: for what is kept outside of the
  // engine and refers to its rows. After begin().
  void need_current_reads();

  // Whose worker it is. Not in a procedure.
  Coordinator& coordinator() {
    CHECK(coordinator_ != nullptr);
    return *coordinator_;
  }

  // ---- Guests: transactions of other coordinators of the cluster that read for this one. They
  // begin after host(), lend what they have read and end, and then it is borrowed, all before this
  // one ends: it is only validated, and says nothing of what guests are that have lent nothing.
  // May others read for the transaction? Not if it has locks or writes, reads by RPC, or runs
  // under a protocol that locks what it reads, gives leases or commits in a global order.
  bool may_host();
  // Before guests read, the table first. kInvalidArgument unless may_host().
  Result<HostTicket> host(TableId table);
  // In place of begin(). The transaction may read, and nothing else; abort() ends it.
  Status begin_as_guest(const HostTicket& ticket);
  // How many bytes lend() writes; memory for them begins at a multiple of 64. 0: nothing need be
  // borrowed.
  size_t bytes_to_lend();
  void lend(std::byte* to);
  // The bytes stay where they are until the transaction has ended, which keeps `memory` as long.
  // kAborted: a guest has read another version of something than this one did.
  Status borrow(std::span<const std::byte> lent, std::shared_ptr<const void> memory = nullptr);
  // Where histories are kept (set_history): the same of the guest's part in its host's.
  std::vector<HistoryEvent> lend_history();
  void borrow_history(std::vector<HistoryEvent> events);

  // ---- Hints, for code that builds structures on rows (engine/index/). Not in a procedure.
  // What the transaction knows of a key without asking: its own write, or what it has read. False:
  // nothing.
  bool read_own_sets(TableId table, std::string_view key, RowView& out,
                     uint32_t visible_before = kEveryCommand);
  // A row as it is in memory. It is not read by the protocol: it may be stale or torn, own writes
  // are not seen, and nothing joins the read set. The view ends as soon as the coroutine yields.
  Status unvalidated_read(TableId table, std::string_view key, RowView& out);
  // Rows that were so read, and found whole, are kept for all transactions of the coordinator, if
  // not for ever: out.found.
  Status kept_unvalidated_read(TableId table, std::string_view key, RowView& out);
  void keep_unvalidated_read(TableId table, std::string_view key, std::string_view row);
  void forget_unvalidated_read(TableId table, std::string_view key);
  // What follows are rows that many transactions want: other coroutines of the worker, which would
  // only lose to this one, get no turn before it has ended, unless it has to wait for something.
  void meet_hot_rows();
  // The transaction reads so much that writers may make it lose again and again, as if it scanned
  // a table: the attempt after some lost ones asks for exclusive gate mode.
  void note_wide_read();
  // Before a table is read whole by what is not run again when it loses: waits until nodes have
  // split what earlier loads have made too long, up to a minute and as long as they get on.
  // kCancelled: by cancel().
  Status wait_for_splits();
  // What was read does not fit together, as no serializable state does: kAborted, for the caller to
  // return, and the transaction counts as one that lost.
  Status abort_on_conflict();

  // ---- Commands and savepoints: tags of own writes.
  void set_command(uint32_t command);
  // Writes from now on belong to a new level, which is returned (1 = the first savepoint).
  uint32_t savepoint();
  void rollback_to(uint32_t level);  // forgets writes of levels >= `level`; level stays closed
  // After it: other sessions get the rows that try_lock() has locked in these levels, unless the
  // protocol locks what it reads.
  Status let_go();
  bool has_to_let_go() const;
  void release(uint32_t level);  // hands writes of levels >= `level` to level - 1

  bool has_writes() const;
  bool touched_engine() const;                // the gate was entered
  uint64_t began_us() const;                  // then, by its worker's clock; 0: it was not
  const VerbCounters& verb_counters() const;  // of this transaction so far

  // ---- Tables. Not transactional: the caller keeps a pending list (drop what was created when
  // its transaction aborts, drop what was replaced when it commits).
  // `wanted`: the id that it had, for a table that is made again; kNoSpace when it is in use,
  // kNotFound when that very table was dropped and is not gone yet.
  Result<TableMeta> create_table(const TableSpec& spec, TableId wanted = kNoTable);
  Status drop_table(TableId table);
  Result<TableMeta> find_table(const TableSpec& identity);
  // Of all front ends.
  Result<std::vector<ListedTable>> list_tables(TableList which = TableList::kWhole);
  Result<TableSize> table_size(TableId table);  // of all nodes together; kNotFound
  // Before the transaction takes a table away with what is in it, which no other uses any more:
  // kAborted if it reads as of its beginning and others have written or read anything there since,
  // as a DELETE of all rows would find. Every row's header is looked at.
  Status lose_if_used_since(TableId table);
  // The same question where the transactions that are under way lock what they read: whether
  // another one has locked anything there, but for shared locks, which do not say whose they are.
  Result<bool> locked_by_others(std::span<const TableId> tables);
  // kTimeout, here and in locked_headers(): the node has given no sign of life for `silence_us_max`
  // (0: it is waited for).
  Result<NodeStatistics> node_statistics(NodeId node, uint64_t silence_us_max = 0);
  // What a node says of its part of a table, or (kNoTable) of what no table of it leads to, in one
  // pass: engine/verify makes others before it reports anything. kNotFound.
  Result<AuditReport> audit(NodeId node, TableId table);
  // Headers of a node that are locked or waited for, from where `from` (0, or the `next` of the
  // answer before) says. Not a snapshot.
  Result<LockedHeaders> locked_headers(NodeId node, uint64_t from, uint64_t silence_us_max = 0);
  // Those that keep the transaction that begins out of the gate (Gate::waited_for).
  const std::vector<WorkerId>& waited_for_at_gate();
  // The gate, and the line of every worker at it.
  Status gate_state(GateLine* gate, std::vector<WorkerLine>* lines);
  // What protocol the gate has open; nothing when none was opened since the cluster began.
  Result<std::optional<Protocol>> open_protocol();

  // ---- Loads of tables that no other transaction has heard of before this one has committed, and
  // that are dropped if it does not. The nodes put the rows in place at once, without the protocol:
  // from then on they are there like rows of an earlier transaction, and the write set need not
  // hold them. After any error, kDuplicateKey of keys[*duplicate] among them, some rows are in
  // place, and the transaction has to be aborted.
  //
  // Only for a table that the transaction has not met (has_met()): its locks would be in the way,
  // and what it has read would be old. kInvalidArgument: the protocol gives rows stamps that the
  // transaction's end decides, or commits in a global order (may_load()).
  Status load_rows(TableId table, std::span<const std::string_view> keys,
                   std::span<const std::string_view> rows, bool check_absent, size_t* duplicate);
  // The same in two steps, between which the nodes work; one load at a time. Nothing may look at
  // the table before await_load() or finish_load(). One that has failed stays posted, and fails
  // finish_load(), commit() and prepare() with what it has failed with, until its table is not
  // wanted any more (give_up_load()).
  Status post_load(TableId table, std::span<const std::string_view> keys,
                   std::span<const std::string_view> rows, bool check_absent);
  bool load_posted() const { return posted_load_ != nullptr; }  // and has not ended well
  void await_load() {
    if (load_posted()) await_posted();
  }
  Status finish_load(size_t* duplicate);  // ok where none is posted
  void give_up_load();                    // does not yield
  bool may_load() const;
  // Has the transaction read, locked or written anything of the table? Looks through all that it
  // has met.
  bool has_met(TableId table);
  // A hint before a load: the table will have about that many rows, so that its index grows at once
  // and not beside the load. Waits for that, for a few seconds at most.
  Status expect_rows(TableId table, uint64_t rows);

  const Topology& topology();
  // Of the worker: to yield, to sleep, to read the clock (its endpoint's).
  Scheduler& scheduler();
  // A random number, for ids that no allocator hands out. Not in a procedure.
  uint64_t draw_number();

 private:
  // The transaction starts at its first access.
  Status enter(uint64_t first_access);
  Status enter_at(TableId table, std::string_view key);
  Status enter_to_scan(TableId table);
  static uint64_t name_of_access(TableId table, std::string_view key);
  static Status check_sizes(std::string_view key, std::string_view row);  // kTooLarge
  void end_transaction();
  void await_posted();
  // Before the transaction ends: what it drops then, nodes must not fill any more.
  Status end_loads() {
    const bool none = posted_load_ == nullptr && given_up_loads_.empty();
    return none ? Status() : end_posted_loads();
  }
  Status end_posted_loads();
  Patience patience(uint64_t silence_us_max);
  Status find(TableId table, std::string_view key, std::string_view row, bool to_write,
              KeyState*& state);
  KeyState* known_to_write(TableId table, std::string_view key, std::string_view row);
  RowSource& rows() {
    CHECK(rows_ != nullptr);
    return *rows_;
  }
  Transaction& txn();
  Coordinator::Impl& engine();

  Coordinator* const coordinator_;  // nullptr: rows are given, and there is nothing but them
  Scheduler* const scheduler_;
  const PartitionMap map_;  // given rows are all on node 0
  std::unique_ptr<Transaction> txn_;
  std::unique_ptr<PostedLoad> posted_load_;
  std::vector<std::unique_ptr<PostedLoad>> given_up_loads_;
  RowSource* rows_;  // the transaction, or the given rows; nullptr: no transaction is active
  bool cancelled_ = false;
  bool outcome_unknown_ = false;
  uint64_t held_by_ = 0;  // as the transaction that has ended knew it
  Restart restart_;
};

// Runs engine calls for a caller that has no coroutine: start() hands a command to a coroutine,
// resume() steps the worker, and the caller checks for interrupts between.
//
//   pump.start([&] { return session.commit(); });
//   while (!pump.resume()) { CHECK_FOR_INTERRUPTS(); pump.wait(10'000); }
class SessionPump {
 public:
  explicit SessionPump(Coordinator& coordinator) : coordinator_(coordinator) {}
  void start(std::function<Status()> command);  // CHECKs that none is under way
  bool busy() const { return busy_; }
  bool resume();               // true: finished, see result()
  void go_on();                // one step of what needs no command; none may be under way
  void wait(uint64_t us_max);  // sleeps until something may be done; a signal ends it early
  uint64_t progress() const;   // grows while the command gets on, however long it takes
  const Status& result() const { return result_; }

 private:
  Coordinator& coordinator_;
  std::function<Status()> command_;  // that has not begun
  Status result_;
  bool busy_ = false;
};

}  // namespace rdmacc
