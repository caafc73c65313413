#pragma once
#include <functional>
#include <memory>

#include "engine/storage/layout/tuple.h"
#include "engine/storage/wire/loaded_rows.h"
#include "engine/storage/wire/messages.h"
#include "engine/storage/wire/structure_observer.h"
#include "rdma/rpc/worker.h"

// The owner's side of a node's storage: formatting and reopening its region, the arena, the
// directory, chaining of buckets and splitting of groups. One per node; its methods run on the
// threads of this node (thread 0 alone registers allocation, so that the arena needs no lock;
// other threads of the node do not register these methods).
//
// The arena hands out slots (of a table's slot size), overflow blocks, groups and buckets from
// 256 KB pages of one size class each. Slot and group pages are type-stable while their addresses
// may be known: a header stays a header, so that a lock CAS on a stale address can only hit a lock
// word (docs/sequences.md §5.3). A slot is handed out locked, by CAS 0 -> the requester's ctts, as
// any transaction would lock it. What was freed is handed out again only once every transaction
// that was under way has ended (epochs in the control area, engine/cluster/gate.h), with a new
// incarnation: it rises when the deleter unlinks the slot, when the slot is retired and when it is
// handed out.

namespace rdmacc {

// What a coordinator caches of a table; the same on all nodes but for the roots.
struct TableMeta {
  TableId id = kNoTable;
  uint32_t record_size = 0;
  uint32_t history = 0;
  uint64_t created_us = 0;  // node 0's clock
};

// What a table's rows and index occupy: units in use, old versions and tombstones included.
struct TableSize {
  uint64_t rows = 0;  // that have a slot
  uint64_t bytes = 0;
  uint64_t latest_stamp = 0;  // wts or rts, of its rows and gaps
  uint64_t locked = 0;        // of these, exclusively by others than the worker that asks
};

// A header that a transaction holds or waits for: what the holder wrote there, as it was seen.
struct LockedHeader {
  GlobalAddress address;
  TableId table = kNoTable;
  uint32_t database = 0;  // the table's identity; 0 when it is gone
  uint32_t relfilenode = 0;
  bool gap = false;       // a gap header, not a record's
  bool live = false;      // a record's that holds a row
  uint64_t key_hash = 0;  // of a gap header: the hash bits of its group
  uint64_t lock = 0, waiter = 0, sundial = 0;
};
// Some of a node's locked headers. `next` is where to ask on, 0 at the end.
struct LockedHeaders {
  uint64_t next = 0;
  std::vector<LockedHeader> headers;
};
// No answer has more: a page's headers are told together.
constexpr uint32_t kLockedHeadersMax = 2 * kPageBytes / sizeof(Header);

// A row as it is in memory; views that end with the call that gave it.
struct StoredRow {
  TableId table = kNoTable;
  uint64_t stamp = 0;
  std::string_view key, row;
};

class StorageService {
 public:
  // Formats the region, or reopens it when its superblock says it is formatted: then the arena's
  // free lists are rebuilt from what the indexes and the locked slots reach, and splits that the
  // earlier process left half done are finished or undone.
  static Result<std::unique_ptr<StorageService>> open(Worker& worker, const Topology& topology);
  virtual ~StorageService() = default;

  // Registers kMethodAllocate .. kMethodReserveBlocks with the worker's Rpc.
  // Every handler passes through `guard`, which keeps requests of dead callers out.
  using Guard = std::function<Rpc::Handler(Rpc::Handler)>;
  static Rpc::Handler unguarded(Rpc::Handler handler) { return handler; }  // no caller dies
  virtual void serve(const Guard& guard) = 0;
  // Groups are split in a request's name only while these hold back the order of a deterministic
  // protocol: begin(deadline_us) false: not by then. maintain() is called while it is held back.
  struct OrderHold {
    std::function<bool(uint64_t deadline_us)> begin;
    std::function<void()> end;
  };
  static OrderHold without_order() {
    return {[](uint64_t) { return true; }, [] {}};
  }
  virtual void set_order_hold(OrderHold hold) = 0;  // before the first request
  // Splits groups whose buckets have become chains; advances reclamation. Called by the node's
  // loop as a coroutine, at most every few milliseconds and only while pending() says so.
  virtual bool maintenance_pending() const = 0;
  // True if it got anything done: where all of it waits for a transaction to end, looking again
  // and again does not help.
  virtual bool maintain() = 0;

  // Pauses between two times that empty pages become usable for anything, while they are not
  // scarce: transactions forget addresses then.
  static constexpr uint64_t kRecycleEveryUs = 1'000'000;
  virtual void recycle_every(uint64_t us) = 0;
  // Empty pages of slots and groups keep their unit sizes from now on, until all nodes are
  // formatted anew: the counter of eras is at its end (control_area.h).
  virtual bool out_of_eras() const = 0;

  // How long a row that is not written keeps its block of old versions, once no transaction reads
  // them any more.
  static constexpr uint64_t kKeepVersionsUs = 10'000'000;
  virtual void keep_versions_for(uint64_t us) = 0;
  // Offsets of overflow blocks that a worker keeps in advance: at most `count`, fewer while
  // memory is scarce. Of thread 0 itself; others ask by kMethodReserveBlocks.
  virtual Status reserve_blocks(WorkerId worker, uint32_t block_bytes, uint32_t count,
                                std::vector<uint64_t>& blocks) = 0;

  // Is told how indexes change from now on (nullptr: none is). Not owned.
  virtual void observe(StructureObserver* observer) = 0;

  virtual bool reopened() const = 0;

  // ---- For a log of this node on disk (engine/durable).
  // Told of what changes beside transactions: a table that is there, one that is about to go, rows
  // that are in place. The request is answered when they return, with their errors. May yield.
  struct ChangeLog {
    std::function<Status(const ListedTable&)> created;
    std::function<Status(TableId)> dropped;
    std::function<Status(const LoadedRows&, std::span<const RowToLoad>)> loaded;
  };
  virtual void set_change_log(ChangeLog log) = 0;
  virtual std::vector<ListedTable> tables() const = 0;
  // Every row of a page of memory, locked or not: what is being installed may be torn (its key is
  // not) or left out. Does not yield; a row is in one page for as long as it is there.
  virtual uint64_t row_pages() const = 0;
  virtual void rows_of_page(uint64_t page, const std::function<void(const StoredRow&)>& visit) = 0;
  // Makes a table again with the id that it had, and puts rows into it, before transactions know
  // of it: on every node for itself. May yield.
  virtual Status restore_table(const ListedTable& table) = 0;
  virtual Status restore_row(const LoadedRows& load, const RowToLoad& row) = 0;
  // What is in the region: of a node without a log on disk, of one whose rows are being restored,
  // or of one that has them all.
  enum class Contents : uint64_t { kMemory = 0, kRestoring = 1, kOnDisk = 2 };
  virtual Contents contents() const = 0;
  virtual void set_contents(Contents contents) = 0;

  virtual NodeStatistics statistics() = 0;
  // Addresses of every header of this node whose lock, waiter word or SUNDIAL lock was set by
  // `worker` (low 16 bits); a lock that is shared does not name its holders. Yields while scanning.
  // For resolution.
  virtual std::vector<GlobalAddress> locks_of(WorkerId worker) = 0;
  // Addresses of every header whose lock word counts readers; yields while scanning. For the sweep
  // of shared locks.
  virtual std::vector<GlobalAddress> shared_headers() = 0;
  // Frees a slot that an unfinished insert left allocated, locked by `ctts` of the caller's victim:
  // incarnation + 1, unlocked, back to the free list. One that is locked otherwise stays.
  virtual void discard_slot(uint64_t offset, uint64_t ctts) = 0;
  // Microseconds of the largest stamp that a split has given out; 0 = none yet.
  virtual uint64_t last_split_us() const = 0;
};

}  // namespace rdmacc
