#pragma once
#include <map>
#include <tuple>

#include "engine/storage/layout/key_hash.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/owner/owned_region.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// The owner's side of a node's table directory. Entries are published by their first word (id and
// state) last. An entry keeps its id when the table is gone, so that ids only rise.
//
// Node 0's directory is the authority: it allots ids, and a table exists once node 0's entry is
// live. A reservation is held by the worker that asked until it creates, drops, dies, or
// kReservationUs pass; a second create of the same identity is refused meanwhile. On other nodes
// an entry of the same identity with a smaller id is what an unfinished create left behind.
//
// Used by the node's thread 0 alone; no method yields.
class Directory {
 public:
  static constexpr uint64_t kReservationUs = 30'000'000;

  Directory(const RegionLayout& layout, const OwnedRegion& region, Endpoint& endpoint)
      : layout_(layout), region_(region), endpoint_(endpoint) {}

  // Learns what is in the region. kCorrupt when an entry makes no sense.
  Status open();

  // Node 0: an id for a new table; `wanted` if that is not kNoTable, which a table had that is made
  // again. kDuplicateKey, kNoSpace.
  Result<TableId> reserve(const TableSpec& spec, WorkerId by, TableId wanted = kNoTable);
  bool reserved(TableId id, const TableSpec& spec, WorkerId by) const;
  void cancel_reservation(TableId id);

  // kDuplicateKey: the identity or the id is a table's; kNoSpace: the id's entry is that of
  // another, or of one that was dropped; kNotFound: of this one, which was.
  Status may_create(TableId id, const TableSpec& spec) const;
  void publish(TableId id, const TableSpec& spec, uint64_t root_bits);
  void set_dropped(TableId id);
  void set_free(TableId id);

  // nullptr unless there is such a live table. Valid until it is set free.
  const DirectoryEntry* live(TableId id) const;
  // A table that is there in any state.
  const DirectoryEntry* present(TableId id) const;
  TableId find(const TableSpec& identity) const;  // kNoTable: not live
  std::vector<TableId> tables(TableState state) const;

  void set_root(TableId id, uint64_t root_bits);
  void add_rows(TableId id, int64_t change);
  void set_rows(TableId id, uint64_t rows);
  uint64_t live_count() const { return by_identity_.size(); }
  uint64_t rows() const { return rows_; }

 private:
  Status not_dropped(TableId id, const TableSpec& spec) const;
  using Identity = std::tuple<uint64_t, uint32_t, uint32_t>;
  struct Reservation {
    Identity identity;
    WorkerId by;
    uint32_t incarnation;
    uint64_t until_us;
  };
  static Identity identity_of(const TableSpec& spec) {
    return {spec.system_id, spec.database, spec.relfilenode};
  }
  DirectoryEntry* at(TableId id) const;
  void set_state(TableId id, TableState state);
  bool expired(const Reservation& reservation) const;
  bool entry_is_reserved(TableId number) const;
  TableId promise(TableId id, const TableSpec& spec, WorkerId by);
  Result<TableId> reserve_wanted(TableId id, const TableSpec& spec, WorkerId by);

  const RegionLayout layout_;
  const OwnedRegion& region_;
  Endpoint& endpoint_;
  std::map<Identity, TableId> by_identity_;  // live tables
  std::map<TableId, Reservation> reservations_;
  TableId next_number_ = 1;  // see number_of_table()
  uint64_t rows_ = 0;        // of all live tables
};

}  // namespace rdmacc
