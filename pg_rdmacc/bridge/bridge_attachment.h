#pragma once
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/index/index_loader.h"
#include "engine/index/index_scan.h"
#include "engine/index/ordered_index.h"
#include "engine/session.h"
#include "engine/stats/stats_recorder.h"
#include "engine/verify/verify.h"
#include "pg_rdmacc/bridge/engine_bridge.h"
#include "pg_rdmacc/bridge/stale_entries.h"
#include "rdma/open/open_fabric.h"

// The engine's side of engine_bridge.h: one Attachment per backend, made in the backend
// after fork and used by its one thread. Everything that libraries may throw ends at this border:
// commands are run by guarded(), calls by no_throw().

namespace rdmacc::bridge {

// Of all sessions; nullptr when the server keeps none.
SharedStats* shared_stats();

// What a handle of a BridgeScan stands for. The view of a batch lives until the next one.
struct Scan {
  const void* owner;  // only ever compared
  ScanHandle cursor;
  bool counts_only = false;
  std::vector<RowView> batch;
  std::vector<BridgeRow> rows;  // of the batch, and what is left of longer ones
  uint64_t count = 0;           // of the batch
};

// What a handle of a BridgeIndexScan stands for.
struct RangeScan {
  const void* owner;
  bool sought = false;
  IndexScan cursor;
  std::vector<std::string_view> batch;
  std::vector<BridgeBytes> entries;
};

// What a handle of a BridgeReadBatch stands for.
struct OpenBatch {
  const void* owner;
  ReadBatch batch;
  std::vector<std::string_view> keys;
  std::vector<RowView> views;
};

// What a handle of a BridgeIndexLoad stands for.
struct IndexLoad {
  const void* owner;
  uint32_t index;
  bool in_place;
  std::optional<IndexLoader> loader;  // once the transaction has begun
  std::vector<BridgeWrite> loaded;    // in place, by the last call
};

// A change of an index that the transaction has still to make. In the order of entries: the marker,
// then the beginning, then the rest, which alone is not here.
struct WaitingChange {
  uint64_t beginning;  // as a number, the bytes behind the marker
  uint8_t marker;      // of the entry's first column
  EntryChange::Kind kind;
  uint16_t entry_bytes;
  uint32_t entry_at;  // among the bytes of its index's
  uint32_t command;   // that asked for it
};

// Those of one index, in the order in which they came.
struct WaitingIndex {
  std::vector<WaitingChange> changes;
  std::string bytes;  // of all entries

  std::string_view entry(const WaitingChange& change) const {
    return {bytes.data() + change.entry_at, change.entry_bytes};
  }
  size_t memory() const { return changes.size() * sizeof(WaitingChange) + bytes.size(); }
};

// Those that wait, all behind the last savepoint.
struct WaitingChanges {
  std::map<uint32_t, WaitingIndex> of_index;
  size_t bytes = 0;
};

// The transaction as PostgreSQL sees it. The session's own begins with the first command, because
// only a command can ask the gate which protocol to join; savepoints made before it are repeated
// then.
struct TxnState {
  bool active = false;
  bool begun = false;
  BridgeTxnOptions options{};
  Protocol protocol = Protocol::kOcc;
  StagePlan plan;
  uint32_t early_levels = 0;
  uint32_t command = 0;
  uint64_t uses = 0;  // commands under way or ended
  WaitingChanges waiting;
};

struct Attachment {
  explicit Attachment(uint64_t seed) : chooser(seed), recorder(shared_stats(), &chooser) {}

  // In the order of construction: the endpoint in the coordinator leaves the fabric first.
  PlanChooser chooser;
  StatsRecorder recorder;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<Session> session;
  std::unique_ptr<SessionPump> pump;
  TxnState txn;
  MissingEntries missing;
  bool outcome_unknown = false;  // of the commit or abort that was the last command
  // Handles are numbers that are never used again, so that a stale one is harmless.
  std::map<uintptr_t, std::unique_ptr<Scan>> scans;
  std::map<uintptr_t, std::unique_ptr<RangeScan>> range_scans;
  std::map<uintptr_t, std::unique_ptr<OpenBatch>> read_batches;
  std::map<uintptr_t, std::unique_ptr<IndexLoad>> index_loads;
  uintptr_t last_handle = 0;
  // For views: of the last bridge_start_locks(), bridge_start_gate() and bridge_start_in_doubt().
  std::vector<BridgeLock> locks;
  uint64_t locks_next = 0;
  bool node_answered = false;  // the one that was asked last
  std::vector<BridgeGateSession> gate_sessions;
  std::vector<BridgeInDoubt> in_doubt;
  std::vector<ListedTable> tables;
  std::vector<BridgeWrite> writes;  // of the prepared transaction
  uint64_t unresolved = 0;
  // Of the last bridge_start_verify(); while it is under way, its session.
  std::vector<Finding> found;
  std::vector<BridgeFinding> findings;
  Session* verifying = nullptr;
  bool verify_cancelled = false;
};

// nullptr unless this very process has attached: a child of the one that did has no worker slot
// of its own and must not use its parent's.
Attachment* attached();

// What a description stands for; kInvalidArgument when it stands for nothing.
Result<FabricChoice> choice_of(const BridgeFabric& fabric);

inline std::string_view view(BridgeBytes bytes) { return {bytes.data, bytes.size}; }
// For a command that gets a handle of one.
inline Status scan_ended() {
  return Status(Code::kInvalidArgument, "the scan's transaction has ended");
}

// Gives the process's attachment up without leaving the cluster: nodes resolve its worker like a
// dead one when the process ends.
void detach_uncleanly();

// The session's transaction is over.
void end_transaction(Attachment& at);

void set_error(const Status& status);
void set_plain_error(Code code, const char* message) noexcept;

// Make the changes that wait (waiting_changes.cc): of one index before the transaction reads it, of
// all before it sets a savepoint or commits. kAborted: an entry is there that should not be, or is
// not there that should be, so the index does not go with the rows that were read.
Status flush_index(Session& session, uint32_t index);
Status flush_indexes(Session& session);
// As the last thing before the commit: leaves are locked before they are read.
Status flush_indexes_to_commit(Session& session);
// Has a change wait, and makes all of them if they are many.
bool change_later(uint32_t index, EntryChange::Kind kind, std::string_view entry);

// Begins the session's transaction if PostgreSQL's has begun and this is its first command.
Status begin_session(Attachment& at);

// Runs `call` at the border. What it throws becomes the last error; false then.
template <typename Call>
bool no_throw(Call&& call) noexcept {
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
    set_plain_error(Code::kNoSpace, "out of memory");
  } catch (const std::exception& failure) {
    set_plain_error(Code::kSystem, failure.what());
  } catch (...) {
    set_plain_error(Code::kSystem, "unknown exception");
  }
  return false;
}

// A handle of a new object in one of the attachment's maps; nullptr when there is no attachment, or
// no memory (bridge_error()).
template <typename Handle, typename Object>
Handle* add_object(std::map<uintptr_t, std::unique_ptr<Object>> Attachment::*objects, Object made) {
  Attachment* at = attached();
  if (at == nullptr) return nullptr;
  uintptr_t handle = 0;
  no_throw([&] {
    (at->*objects).emplace(at->last_handle + 1, std::make_unique<Object>(std::move(made)));
    handle = ++at->last_handle;
  });
  return reinterpret_cast<Handle*>(handle);
}

// nullptr: it is gone.
template <typename Object, typename Handle>
Object* find_object(std::map<uintptr_t, std::unique_ptr<Object>> Attachment::*objects,
                    Handle* handle) {
  Attachment* at = attached();
  if (at == nullptr) return nullptr;
  const auto found = (at->*objects).find(reinterpret_cast<uintptr_t>(handle));
  return found == (at->*objects).end() ? nullptr : found->second.get();
}

template <typename Object, typename Handle>
void free_object(std::map<uintptr_t, std::unique_ptr<Object>> Attachment::*objects,
                 Handle* handle) {
  if (Attachment* at = attached()) (at->*objects).erase(reinterpret_cast<uintptr_t>(handle));
}

// Runs a command on its coroutine. Only what derives from std::exception is caught there: the
// unwinding of an abandoned coroutine has to pass.
template <typename Command>
Status guarded(Command&& command) {
  try {
    return command();
  } catch (const std::bad_alloc&) {
    return Status(Code::kNoSpace, "out of memory");
  } catch (const std::exception& failure) {
    return Status(Code::kSystem, failure.what());
  }
}

// Starts `command` on a coroutine; the transaction's session is begun first. While rows are on
// their way into a table (bridge_start_post_load) it has nothing to do with that table.
template <typename Command>
void start_beside_load(Command command) {
  Attachment* at = attached();
  if (at == nullptr) {
    set_plain_error(Code::kUnavailable, "not attached to the rdmacc nodes");
    return;
  }
  no_throw([&] {
    set_error(Status());
    at->outcome_unknown = false;
    ++at->txn.uses;
    at->pump->start([at, command = std::move(command)] {
      return guarded([&]() -> Status {
        RDMACC_RETURN_IF_ERROR(begin_session(*at));
        return command(*at->session);
      });
    });
    if (!at->pump->busy()) set_error(at->pump->result());  // no coroutine was free
  });
}

// The same, once rows that are on their way into a table are there.
template <typename Command>
void start(Command command) {
  start_beside_load([command = std::move(command)](rdmacc::Session& session) -> Status {
    session.await_load();
    return command(session);
  });
}

// What needs no coroutine, of a transaction that has begun. False: it does, and nothing has
// happened.
template <typename Command>
bool do_at_once(const Command& command) {
  Attachment* at = attached();
  if (at == nullptr || !at->txn.begun || at->pump->busy()) return false;
  ++at->txn.uses;
  std::optional<Status> done;
  if (!no_throw([&] { done = command(*at->session); })) return true;
  if (!done) return false;
  at->outcome_unknown = false;
  set_error(*done);
  return true;
}

}  // namespace rdmacc::bridge
