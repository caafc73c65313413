#pragma once
#include <array>
#include <boost/container/small_vector.hpp>
#include <functional>
#include <iterator>
#include <memory>
#include <memory_resource>

#include "engine/api/row_view.h"
#include "engine/cluster/gate_watch.h"
#include "engine/storage/wire/posted_load.h"
#include "engine/txn/remote/carry_out.h"
#include "engine/txn/stages/first_look.h"
#include "engine/txn/transaction/access_set.h"
#include "engine/txn/transaction/coordinator_state.h"
#include "engine/txn/transaction/key_states.h"
#include "engine/txn/transaction/restart.h"
#include "engine/txn/transaction/row_source.h"
#include "engine/txn/transaction/scanned_batch.h"
#include "engine/txn/transaction/set_memory.h"
#include "engine/txn/transaction/txn_frame.h"

// One attempt of one transaction at its coordinator: read and write sets, own writes, and the
// stages in their order. It knows rules and stages, but no protocol and no primitive by name.
// Used by one coroutine at a time.

namespace rdmacc {

class ReadBatch;

struct TxnParameters {
  const ProtocolRules* rules = nullptr;
  StagePlan plan;
  uint64_t gate_timeout_us = 0;
  bool exclusive = false;  // asks for exclusive gate mode, as after many losses
  const bool* cancelled = nullptr;
};

class Transaction final : public RowSource {
 public:
  Transaction(CoordinatorState& coordinator, const TxnParameters& parameters);
  // It must have ended (no lock held, gate left), unless its worker died and is being dropped.
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  // Its memory is its coordinator's.
  static void* operator new(size_t bytes, CoordinatorState& coordinator) {
    return coordinator.transactions.take(bytes);
  }
  static void operator delete(void* memory, CoordinatorState& coordinator) {
    coordinator.transactions.give_back(memory);
  }
  static void operator delete(Transaction* transaction, std::destroying_delete_t) {
    ObjectMemory& memory = transaction->coordinator_.transactions;
    transaction->~Transaction();
    memory.give_back(transaction);
  }

  // Enters the gate and draws the ctts. `before`: what is kept of attempts that lost.
  Status start(const Restart& before) override;
  bool started() const override { return gate_entry_.inside || guest_; }

  // guests.cc. Whether others may read for it now: it holds no locks and has written nothing, and
  // its rules look at what was read, if at all, at the commit.
  bool may_host() const;
  // Before they read anything. Only if may_host().
  HostTicket host();
  // In place of start(), under the host's rules: then it only reads. It ends by abort(), and before
  // its host does.
  void start_as_guest(const HostTicket& ticket);
  // Writes what the host has to keep of what was read, unless `to` is nullptr. How many bytes; 0:
  // there is nothing to borrow.
  size_t lend(std::byte* to) const;
  // What is lent stays where it is until the transaction has ended, and `memory` is kept as long.
  Status borrow(std::span<const std::byte> lent, std::shared_ptr<const void> memory);
  // What guests have noted for a history becomes their host's.
  std::vector<HistoryEvent> take_events() { return std::exchange(history_.events, {}); }
  void add_events(std::vector<HistoryEvent> events) {
    std::move(events.begin(), events.end(), std::back_inserter(history_.events));
  }

  Status look_up_many(TableId table, std::span<const std::string_view> keys,
                      std::span<KeyState*> states, bool to_write) override;
  // The same of one key.
  Status look_up_one(TableId table, std::string_view key, bool to_write, KeyState*& state);
  // read_batch.cc. May rows be read that are not kept? Then look_up_many() is for keys that are
  // left in the batch; of the others out[i] belongs to keys[i], and lives as long as the batch.
  bool may_read_batch() const;
  Status read_batch(TableId table, std::span<const std::string_view> keys, ReadBatch& batch,
                    std::span<RowView> out);
  Status write(KeyState& state, bool deleted, std::string_view row) override;
  Status amend(KeyState& state, std::string_view row) override;
  KeyState& touch_unchecked(TableId table, std::string_view key) override;
  const KeyState* known(TableId table, std::string_view key) override {
    return keys_.find(table, key);
  }

  // The same, to be written: also of a row that a scan has just returned. nullptr: its base is not
  // known.
  KeyState* known_to_write(TableId table, std::string_view key);

  // engine/session.h says what for. What is posted is ended before the transaction is.
  std::unique_ptr<PostedLoad> post_load(std::span<RowToLoad> rows, TableId table,
                                        bool check_absent);
  Status end_load(PostedLoad& load, size_t* duplicate);
  bool has_met(TableId table);
  // For the next attempt: this one reads as much as a scan.
  void note_wide_read() { scanned_table_ = true; }
  // What was read does not fit together, as no serializable state does: the attempt has lost.
  Status abort_on_conflict();
  Status unvalidated_read(TableId table, std::string_view key, bool& found,
                          std::string_view& row) override;
  Status try_lock(TableId table, std::string_view key, RowLockMode mode,
                  RowLock& result) override;  // lock_rows.cc
  // lock_rows.cc. Two-phase locking keeps such locks: they cover what was read as well.
  Status let_go() override;
  bool has_to_let_go() const { return !to_let_go_.empty(); }
  // Which transaction holds what the last operation was busy for; 0: not known.
  uint64_t held_by() const { return held_by_; }

  // check_reads.cc: aborted unless everything that was read is current; a matter of course where
  // reads are locked, or of one timestamp.
  Status check_reads();
  // From here on it is asked of reads at one timestamp, too, whether they are current.
  void need_current_reads() { needs_current_reads_ = true; }

  // A scan of the whole table begins; what it is told goes into its calls of scan().
  bool begin_scan(TableId table) { return accesses_.begin_scan(table); }
  // One of `groups` groups, or of more: what others do is watched, so that it need not be validated
  // if they do nothing. Before it has read any.
  void watch_others(size_t groups);
  // May a scan have ScanWork::takes_rows? Asked for each call of scan(). What one reads that is
  // not the table's first is validated once more, which may meet the transaction's own locks.
  bool scan_takes_rows(TableId table, bool first, bool to_write) const {
    const ProtocolRules& rules = *parameters_.rules;
    const bool again = !to_write && rules.leaves_no_trace_of_reads();
    return (first || again) && !rules.locks_what_it_reads() && !rules.commits_in_order &&
           (rules.validate || !needs_current_reads_) && accesses_.takes_reads(table);
  }
  // May a scan that takes rows take them from slots, as these lie in memory (scan_slots.h)?
  bool may_scan_slots() const {
    return parameters_.rules->leaves_no_trace_of_reads() &&
           !parameters_.plan.asks_owners(Stage::kRead) &&
           coordinator_.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  }
  // What a scan has returned last, as long as the scan keeps it. Of several scans the last one's.
  void scanned(const std::shared_ptr<ScannedBatch>& batch) { scanned_batch_ = batch; }
  // Scans the groups and adds what it saw to the read set. Tuples' records live in `arena`.
  // `to_write`: rows that others have locked early are in its way.
  struct ScanOf {
    ScanMode mode;
    bool first;
    bool to_write;
  };
  Status scan(std::span<ScanWork> groups, VerbArena& arena, const ScanOf& of);

  void note_scanned(TableId table, const ScannedGroup& group);
  // A row that a scan has met, or the tombstone of one.
  void note_scanned_row(TableId table, std::string_view key, uint64_t version, bool deleted) {
    event(deleted ? HistoryOp::kMiss : HistoryOp::kRead, table, key, version);
  }

  Status commit();
  // As commit(), up to where nothing but an outside decision is missing: its locks are
  // held and its log says that it is prepared under `gtid`. Then commit_prepared() or abort(). One
  // that writes nothing is committed by it. Not for rules that commit in a global order.
  Status prepare(Gtid gtid);
  bool prepared() const { return prepared_; }
  // All that it writes, once it is prepared; views that live until it ends.
  void list_prepared(std::vector<LoggedWrite>& writes) const {
    CHECK(prepared_);
    writes_.list_logged(writes);
  }
  // Ends it. Not ok: its log could not be told, or not everything was installed; it is left to
  // the resolution of this worker.
  Status commit_prepared();
  // In place of all others, for rules that commit in a global order.
  Status execute_procedure(OrderedRequest request, OrderedOutcome& outcome);
  void abort();
  bool outcome_unknown() const { return outcome_unknown_; }
  // For the next attempt, after commit() or abort().
  AttemptEnd end() const;

  void set_command(uint32_t command) override { command_ = command; }
  uint32_t savepoint() override { return ++level_; }
  void rollback_to(uint32_t level) override;
  void release(uint32_t level) override;

  bool has_writes() const { return own_writes_ > 0; }
  KeyStates& keys() { return keys_; }
  CoordinatorState& coordinator() { return coordinator_; }
  const VerbCounters& counters() const { return counters_; }
  uint64_t ctts() const { return stamps_.ctts; }
  const ProtocolRules& rules() const { return *parameters_.rules; }

 private:
  bool shares_locks() const { return parameters_.rules->lock_mode == LockMode::kShared; }
  StageContext context(VerbArena& arena, bool cancellable = true);
  // look_up.cc
  using Wanted = boost::container::small_vector<KeyState*, 16>;
  Status look_up(std::span<KeyState* const> wanted, bool to_write);
  void keep_lease(StageContext& stage);
  Status find_at_first_look(StageContext& stage, std::span<KeyState* const> wanted, size_t& left);
  Status look_first_at(StageContext& stage, CachedTable& table, std::span<KeyState* const> wanted,
                       size_t& left);
  Status note_looks(Status status, std::span<KeyState* const> looks, size_t& left);
  void keep_locks_of_lost(std::span<KeyState* const> looks);
  Status find(StageContext& stage, std::span<KeyState* const> wanted, bool looked);
  struct KeysToRead {
    std::span<const std::string_view> keys;  // at most kKeysAtOnce
    size_t first;                            // the number of the first one
  };
  Status read_some(StageContext& stage, CachedTable& table, const KeysToRead& some,
                   ReadBatch& batch, std::span<RowView> out);
  Status merge(const Access& seen, Access** merged);
  bool has_scanned() const {
    return !scanned_batch_.expired() && !parameters_.rules->commits_in_order;
  }
  bool take_from_scan(KeyState& state);
  Status keep_scanned(const Access& seen, bool first, Access** kept);
  void keep_block(const ScanWork& group);
  Status keep_tuples(ScanWork& group, bool first);
  Status keep_rows(ScanWork& group, const ScanOf& of);
  Status keep_gap(ScanWork& group, const ScanOf& of);
  Status note_found(const KeyWork& work, KeyState& state);
  void note_absence(uint64_t overflow, Access* tombstone, Access* gap, KeyState& state);
  void note_row(std::string_view row, bool kept, uint64_t overflow, Access& tuple, KeyState& state);

  Stage reading_stage() const {
    return parameters_.rules->locks_what_it_reads() ? Stage::kLock : Stage::kRead;
  }
  // The time. Stages of a commit follow each other: the end of one is the beginning of the next.
  // Of those transactions whose stages are timed.
  uint64_t begin_stage(Stage stage) { return timed_ == 0 ? 0 : begin_timed_stage(stage); }
  void time_stage(Stage stage, uint64_t start_ns) {
    if (timed_ != 0) end_timed_stage(stage, start_ns);
  }
  uint64_t begin_timed_stage(Stage stage);
  void end_timed_stage(Stage stage, uint64_t start_ns);
  void time_stages(std::initializer_list<Stage> stages, uint64_t start_ns);
  void note_stage_time(Stage stage, uint64_t ns);
  void event(HistoryOp op, TableId table, std::string_view key, uint64_t version) {
    if (coordinator_.history != nullptr) note_event(op, table, key, version);
  }
  void note_event(HistoryOp op, TableId table, std::string_view key, uint64_t version);

  void begin_again();
  Status unlock(StageContext& stage, Access& access);
  Status lock_now(StageContext& stage, Access& access, RowLockMode mode);
  Status find_and_lock(StageContext& stage, KeyState& state, RowLockMode mode, RowLock& result);
  // A scan whose mode has rules of its own, and keeps nothing.
  Status look_at(const ProtocolRules& rules, std::span<ScanWork> groups, VerbArena& arena);
  Status look_at_rest(std::span<ScanWork> groups, VerbArena& arena);

  // commit_in_order.cc: for rules that commit in a global order.
  Status commit_in_order();
  OrderedRequest make_ordered() const;
  Status check_reads_in_order();
  Status submit_ordered(const OrderedRequest& request, OrderedOutcome& outcome, bool& unknown);
  void finish_ordered(const Status& status, const OrderedOutcome& outcome);
  void note_ordered(const OrderedRequest& request, const OrderedOutcome& outcome);

  void stay_until_the_end();
  Status reach_commit_point(StageContext& stage, Gtid gtid);
  void finish_commit(StageContext& stage);
  bool tell_log(decltype(add_log_voiding)* add);
  Status decide_log();
  bool try_again(const std::function<bool()>& attempt);
  void leave_to_resolution();
  void leave_locks_to_resolution();
  void collect_writes();
  // lock_writes.cc
  Status find_missing_gaps(StageContext& stage);
  Status look_at_gaps(StageContext& stage);
  template <typename Work>
  Status in_memory_of_its_own(StageContext& stage, const Work& work);
  Status lock_writes(StageContext& stage);
  // commit.cc
  Status fix_commit_time(StageContext& stage);
  Status validate_reads(StageContext& stage);
  // agree_on_time.cc
  Status register_reads(StageContext& stage);
  Status commit_behind_readers(StageContext& stage);
  bool may_commit_before(const Status& lost) const;
  Status commit_before_writers(StageContext& stage);
  Status validate_before_writers(StageContext& stage, std::span<Access*> reads);
  using Readers = boost::container::small_vector<uint64_t, 8>;
  Readers readers_of_writes();
  // check_reads.cc
  using Validate = std::function<Status(std::span<Access*> some)>;
  Status validate_scanned(StageContext& stage, const Validate& validate);
  void build_record();
  Status log_record(StageContext& stage);
  Status place_record();
  bool flushed();
  Status flush_log();
  Status end_at_owner(StageContext& stage);
  void install_record(StageContext& stage);
  bool commit_and_release(StageContext& stage, Status& status);
  bool holds_locks() const;  // or what else has to be given back
  void release_locks(StageContext& stage);
  bool release_in_place(StageContext& stage);
  void void_log();
  void care_for_full_groups() {
    if (writes_.relinks()) care_for_relinked_groups();
  }
  void care_for_relinked_groups();
  void settle_after(std::span<const OrderedWrite> writes);
  void finish(HistoryOutcome outcome);
  void finish_as_guest();
  void note_writes();
  void report(HistoryOutcome outcome);
  void tell_observer(HistoryOutcome outcome);
  uint32_t count_nodes() const;
  void note_failure(const Status& status) {
    if (!status.ok()) note_first_failure(status);
  }
  void note_first_failure(const Status& status);

  CoordinatorState& coordinator_;
  const TxnParameters parameters_;
  const uint64_t timed_;  // for so many transactions the times of its stages stand; 0: for none
  TxnStamps stamps_;
  GateEntry gate_entry_;
  bool guest_ = false;   // it reads for another, which is inside
  bool hosted_ = false;  // others may have read for it
  Admission::Place place_;
  uint64_t held_by_ = 0;
  uint64_t start_us_ = 0;
  uint64_t stage_end_ns_ = 0;  // of the latest of a commit's stages; 0: the clock is to be read

  // Read and write sets only grow, and go together; those of a short transaction fit in here.
  std::array<std::byte, 8 * 1024> set_bytes_;
  SetMemory set_memory_{set_bytes_};
  AccessSet accesses_{set_memory_.lasting()};
  KeyStates keys_{set_memory_};
  struct LookedFor {  // in vain, among these (has_met())
    TableId table = kNoTable;
    StableList<Access>::Mark accesses{};
    StableList<KeyState>::Mark keys{};
  };
  LookedFor looked_for_;
  uint64_t own_writes_ = 0;
  uint64_t write_set_bytes_ = 0;
  uint32_t command_ = 0;
  uint32_t level_ = 0;
  uint64_t reads_ = 0;    // look-ups and scans that found their answer
  bool scanned_ = false;  // more than one header may have decided what it saw
  bool scanned_table_ = false;
  bool needs_current_reads_ = false;
  bool is_reader_ = false;        // its slot is open, so that it may be registered
  bool registered_late_ = false;  // for something that it had read before
  uint64_t earliest_time_ = 0;    // at which it may commit, where writers leave readers room
  uint64_t commits_behind_ = 0;   // what it has taken without a read, where commits find their time
  std::vector<Access*> to_let_go_;  // early locks of levels that were rolled back
  bool exclusive_ = false;          // it was let in in exclusive gate mode
  GateWatch watch_;                 // begun before the first read of a scan that is kept as one
  bool rows_before_watch_ = false;  // some were read by their keys
  std::weak_ptr<ScannedBatch> scanned_batch_;
  std::vector<std::shared_ptr<const void>> borrowed_;  // the memory of it
  std::vector<OrderedGroup> ordered_groups_;           // scanned, for rules that commit in order

  std::unique_ptr<TxnFrame> frame_;
  // Of the frame:
  VerbArena& scratch_;
  WritePlan& writes_;
  LogRecord& record_;
  std::vector<LogPlacement>& placements_;
  std::vector<GlobalAddress>& evicted_;
  bool log_begun_ = false;
  // The owner was asked to log, install and release; what it has not confirmed may be done, too.
  bool end_begun_ = false;
  bool installed_ = false;
  bool release_begun_ = false;  // posted with the Commit, and not carried out everywhere
  bool prepared_ = false;
  bool outcome_unknown_ = false;
  bool writes_noted_ = false;           // in the history
  bool stays_inside_ = false;           // the gate, until the worker is resolved
  Status failure_;                      // the first that a stage ended with
  bool lock_state_unknown_ = false;     // a node died under a locking or allocating request
  bool reader_counts_unknown_ = false;  // or one that may have changed reader counts
  bool shares_rows_ = false;            // it has shared locks, or had some, before its commit

  VerbCounters counters_;
  VerbCounters allocation_counters_;
  HistoryTransaction history_;
};

}  // namespace rdmacc
