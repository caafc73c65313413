#pragma once
#include "engine/storage/owner/dropped_tables.h"
#include "engine/storage/owner/fixed_parts.h"
#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/orphaned_allocations.h"
#include "engine/storage/owner/page_recycler.h"
#include "engine/storage/owner/reclaimer.h"
#include "engine/storage/owner/reserved_slots.h"
#include "engine/storage/owner/tombstones.h"
#include "engine/storage/owner/version_blocks.h"
#include "engine/storage/wire/loaded_rows.h"
#include "engine/storage/wire/storage_messages.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// The StorageService of one node: its parts, and the handlers that check what peers ask for. The
// node's thread 0 alone. Handlers are coroutines; those that yield say so.
class StorageNode : public StorageService {
 public:
  StorageNode(Worker& worker, const Topology& topology);

  // There is memory behind what lies in front of the pages, as far as it is used.
  Status back_fixed_parts() { return fixed_parts_.back(); }
  // The region's first use, or its next one by a new process.
  Status format();
  Status reopen();
  bool formatted() const;

  void serve(const Guard& guard) override;
  void set_order_hold(OrderHold hold) override { order_hold_ = std::move(hold); }
  bool maintenance_pending() const override;
  bool maintain() override;
  void recycle_every(uint64_t us) override { recycler_.recycle_every(us); }
  bool out_of_eras() const override { return recycler_.out_of_eras(); }
  void keep_versions_for(uint64_t us) override { versions_.keep_for(us); }
  Status reserve_blocks(WorkerId worker, uint32_t block_bytes, uint32_t count,
                        std::vector<uint64_t>& blocks) override;
  void observe(StructureObserver* observer) override {
    index_.observe(observer);
    recycler_.observe(observer);
  }
  bool reopened() const override { return reopened_; }
  void set_change_log(ChangeLog log) override { change_log_ = std::move(log); }
  std::vector<ListedTable> tables() const override;
  uint64_t row_pages() const override { return arena_.page_count(); }
  void rows_of_page(
      uint64_t page,
      const std::function<void(const StoredRow&)>& visit) override;  // storage_load.cc
  Status restore_table(const ListedTable& table) override;
  Status restore_row(const LoadedRows& load, const RowToLoad& row) override;
  Contents contents() const override;
  void set_contents(Contents contents) override;
  NodeStatistics statistics() override;
  std::vector<GlobalAddress> locks_of(WorkerId worker) override;
  std::vector<GlobalAddress> shared_headers() override;
  void discard_slot(uint64_t offset, uint64_t ctts) override;
  uint64_t last_split_us() const override { return index_.last_split_us(); }

 private:
  using Bytes = std::span<const std::byte>;
  using Reply = Rpc::Bytes;
  using HandlerMethod = Status (StorageNode::*)(WorkerId, Bytes, Reply&);
  struct Allocation {
    uint32_t record_size = 0, history = 0;
    uint64_t slot = 0, block = 0;  // offsets, 0 = none
  };

  void handle(MethodId method, HandlerMethod handler);
  Status handle_allocate(WorkerId from, Bytes request, Reply& reply);
  Status handle_reserve_slots(WorkerId from, Bytes request, Reply& reply);
  Status handle_free(WorkerId from, Bytes request, Reply& reply);
  Status handle_extend_bucket(WorkerId from, Bytes request, Reply& reply);
  Status handle_split_soon(WorkerId from, Bytes request, Reply& reply);
  Status handle_expect_rows(WorkerId from, Bytes request, Reply& reply);
  Status handle_load_rows(WorkerId from, Bytes request, Reply& reply);  // storage_load.cc
  Status handle_create_table(WorkerId from, Bytes request, Reply& reply);
  Status handle_drop_table(WorkerId from, Bytes request, Reply& reply);
  Status handle_find_table(WorkerId from, Bytes request, Reply& reply);
  Status handle_list_tables(WorkerId from, Bytes request, Reply& reply);
  Status handle_table_size(WorkerId from, Bytes request, Reply& reply);
  Status handle_audit(WorkerId from, Bytes request, Reply& reply);
  Status handle_reserve_blocks(WorkerId from, Bytes request, Reply& reply);
  Status handle_back_log_ring(WorkerId from, Bytes request, Reply& reply);
  Status handle_reserve_table_id(WorkerId from, Bytes request, Reply& reply);
  Status handle_node_statistics(WorkerId from, Bytes request, Reply& reply);
  Status handle_locked_headers(WorkerId from, Bytes request, Reply& reply);
  // What maintenance changes when it gets on.
  struct Progress {
    uint64_t splits, epoch;
    size_t groups_queued, orphaned_allocations, tombstones, dropped_tables, deferred_frees;
    uint64_t withdrawn_pages;
    size_t version_blocks, reserved_slots;
    friend bool operator==(const Progress&, const Progress&) = default;
  };

  Progress progress() const;
  bool will_be_freed(uint64_t offset) const;
  void defer_free(uint64_t slot);
  void free_deferred();
  bool split_some(uint64_t deadline_us);
  Status handle_wait_for_pending_splits(WorkerId from, Bytes request, Reply& reply);

  Status allocate(const AllocateRequest& request, std::vector<Allocation>& taken, Reply& reply);
  Status allocate_all(const AllocateRequest& request, std::vector<Allocation>& taken);
  Status take_units(const AllocateRequest& request, std::vector<Allocation>& taken);
  Status lock_slots(uint64_t ctts, std::vector<Allocation>& taken);
  Status hand_out(const AllocateRequest& request, const std::vector<Allocation>& taken);
  void undo(uint64_t ctts, const std::vector<Allocation>& taken);
  Status load_row(const LoadedRows& load, const RowToLoad& row, bool* exists);
  Status find_unlocked_place(const LoadedRows& load, uint64_t hash, HashIndexOwner::Place& place);
  bool holds_key(uint64_t slot, TableId table, uint64_t hash, std::string_view key) const;
  struct UnitsOfRow {
    uint64_t slot = 0, block = 0;  // 0: none
  };
  Status take_units_of_row(const LoadedRows& load, const RowToLoad& row, UnitsOfRow& units);
  void drop_unless_quiet(const LoadedRows& load, UnitsOfRow& units);
  Status place_row(const LoadedRows& load, const RowToLoad& row, UnitsOfRow& units, bool* exists);
  void write_loaded(const LoadedRows& load, const RowToLoad& row, uint64_t hash,
                    const UnitsOfRow& units);
  bool read_row(uint64_t slot, std::string& record, StoredRow& row) const;
  Status check_free(const FreeMessage& request) const;
  void unlock_slots(uint64_t ctts, const std::vector<uint64_t>& slots);
  void drop(TableId id);
  bool reclaim_some();

  LockedHeaders locked_headers(uint64_t from_page);
  // Yields after each page.
  void for_each_header(const std::function<void(uint64_t offset, bool used)>& look);

  void format_order_area();
  Status mark_tables();
  void note_locked(std::vector<OrphanedAllocation>& found);
  void note_rows();
  void note_live_unlinked(std::vector<OrphanedAllocation>& found) const;

  Worker& worker_;
  const Topology topology_;
  const RegionLayout layout_;
  const OwnedRegion region_;
  FixedParts fixed_parts_;
  Arena arena_;
  Directory directory_;
  HashIndexOwner index_;
  Reclaimer reclaimer_;
  OrphanedAllocations orphaned_allocations_;
  Tombstones tombstones_;
  VersionBlocks versions_;
  DroppedTables dropped_tables_;
  PageRecycler recycler_;
  ReservedSlots reserved_slots_;
  bool reopened_ = false;
  uint64_t requests_ = 0;
  uint32_t drops_under_way_ = 0;  // tables that are gone, and whose memory follows
  Guard guard_;
  OrderHold order_hold_;
  ChangeLog change_log_;  // empty: nothing is told
  struct DeferredFree {
    uint64_t slot;
    uint64_t identity;  // table and incarnation: another owner's slot has another
  };
  static constexpr size_t kDeferredFreesMax = 64 * 1024;
  std::vector<DeferredFree> deferred_frees_;
  uint64_t started_us_ = 0;
};

}  // namespace rdmacc
