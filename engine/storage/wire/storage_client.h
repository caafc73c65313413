#pragma once
#include <string_view>
#include <vector>

#include "engine/storage/wire/audit_message.h"
#include "engine/storage/wire/loaded_rows.h"
#include "engine/storage/wire/storage_messages.h"
#include "engine/storage/wire/storage_service.h"

// The coordinator's side of StorageService: one class per worker that makes the RPCs, in any
// stage plan. All calls are made from a coroutine and yield.

namespace rdmacc {

// How long a call that its caller can do without waits for a node that gives no sign of life (0: as
// long as it takes): kTimeout; kCancelled as soon as *cancelled is true, whatever the node does.
struct Patience {
  uint64_t silence_us_max = 0;
  const bool* cancelled = nullptr;
};

class StorageClient {
 public:
  StorageClient(Worker& worker, const Topology& topology) : worker_(worker), topology_(topology) {}

  struct SlotRequest {
    TableId table;
    uint64_t key_hash;        // written into the slot's header
    uint32_t overflow_bytes;  // 0: the record fits inline; else also an overflow block this long
    NodeId node;
    // Out:
    GlobalAddress slot;  // null when only an overflow block was asked for
    GlobalAddress overflow;
    uint32_t incarnation = 0;
    // Of the slot's earlier life: none of them ever goes back. `wts` is rts if that is larger.
    uint64_t wts = 0;
    uint64_t lease = 0;  // SUNDIAL's word
    bool want_slot = true;
  };
  // Allocates for all requests, some thousands of a node in a message. Slots come locked with
  // `ctts`; blocks are tagged with it. All or nothing: on an error (kNoSpace, kUnavailable, …) what
  // was allocated has been freed.
  Status allocate(std::span<SlotRequest> requests, uint64_t ctts, VerbCounters& counters);

  // Up to `count` overflow blocks for `block_bytes`, to be kept until rows need them, are
  // appended to `blocks`. kNoSpace: none.
  Status reserve_blocks(NodeId node, uint32_t block_bytes, uint32_t count,
                        std::vector<GlobalAddress>& blocks, VerbCounters& counters);
  // There is memory behind the worker's log ring on the node from then on. True: the node has a log
  // on disk, too, and a transaction commits when that has its record (kMethodFlushLog).
  Result<bool> back_log_ring(NodeId node, VerbCounters& counters);
  // Slots of a table, to be kept until inserts need them, locked by `tag`: a ctts of
  // this worker that no transaction has. All that were asked for are appended, or none.
  Status reserve_slots(NodeId node, TableId table, uint32_t count, uint64_t tag,
                       std::vector<SlotRequest>& slots, VerbCounters& counters);

  struct FreeRequest {
    GlobalAddress address;
    FreeKind kind;
    // kSlot: unlocked and unlinked already, or never linked (then still locked with `ctts`).
  };
  // Gives back slots and blocks. Lost requests leak until the node's next start. `patient`: nodes
  // that sleep need not be woken for it.
  Status free(std::span<const FreeRequest> requests, uint64_t ctts, VerbCounters& counters,
              bool patient = false);

  // Chains buckets behind home bucket `bucket` of `group` until its chain has `entries` empty
  // entries. The caller holds the gap header's lock with `ctts`.
  Status extend_bucket(GlobalAddress group, uint32_t bucket, uint32_t entries, uint64_t ctts,
                       VerbCounters& counters);

  // Tells the owners of groups that these are full: they are split soon, if they are worth it. At
  // most kFullGroupsMax.
  Status split_soon(std::span<const GlobalAddress> groups, VerbCounters& counters,
                    Patience patience = {});
  // A table is about to have that many rows, on all nodes together: its groups are split before
  // they fill, and this waits for it (bounded). A hint.
  Status expect_rows(TableId table, uint64_t rows, VerbCounters& counters);

  // `wanted`: the id that it had, of a table that is made again (kNoSpace: it is in use).
  Result<TableMeta> create_table(const TableSpec& spec, VerbCounters& counters,
                                 TableId wanted = kNoTable);
  Status drop_table(TableId id, VerbCounters& counters);
  // By (system id, database, relfilenode), at node 0; kNotFound.
  Result<TableMeta> find_table(const TableSpec& identity, VerbCounters& counters);
  // All tables by id: as node 0 has them, or any node.
  Result<std::vector<ListedTable>> list_tables(VerbCounters& counters,
                                               TableList which = TableList::kWhole);
  // On all nodes; kNotFound.
  Result<TableSize> table_size(TableId id, VerbCounters& counters);
  // What the node says of its part of a table, or (kNoTable) of units that no table leads to.
  // kNotFound: there is no such table.
  Result<AuditReport> audit(NodeId node, TableId table, VerbCounters& counters);
  Result<NodeStatistics> statistics(NodeId node, VerbCounters& counters, Patience patience = {});
  // Locked headers of a node from where `from` (0, or the `next` of the answer before) says. Not a
  // snapshot: each was seen at a moment of its own.
  Result<LockedHeaders> locked_headers(NodeId node, uint64_t from, VerbCounters& counters,
                                       Patience patience = {});
  // Waits until the nodes have split the groups that extend_bucket made too long, so that the
  // index does not move under the transactions that follow: for so many rounds, which a node ends
  // after 0.2 s, and no longer than splits get on. kCancelled: it was cancelled before a round.
  static constexpr int kSettleRounds = 10;
  Status wait_for_pending_splits(std::span<const NodeId> nodes, VerbCounters& counters,
                                 int rounds_max = kSettleRounds, Patience patience = {});
  // Of what may go on without the splits: for a node that gives no sign of life it does not wait.
  static constexpr Patience kSplitPatience{.silence_us_max = 500'000};

 private:
  // As the node has them.
  Result<std::vector<ListedTable>> tables_of(NodeId node, VerbCounters& counters);

  Worker& worker_;
  const Topology topology_;
};

}  // namespace rdmacc
