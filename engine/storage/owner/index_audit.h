#pragma once
#include <functional>

#include "engine/storage/owner/directory.h"
#include "engine/storage/owner/index_walk.h"
#include "engine/storage/wire/audit_message.h"

namespace rdmacc {

// The owner's audit of its part of a table, to tell whether it is sound (engine/verify): nothing is
// changed and nothing is waited for, whatever goes on meanwhile.
//
// A group is read without a yield, so that no split comes in between; transactions go on
// one-sidedly. A transaction that changes entries holds the gap header's lock and leaves other
// stamps behind, one that changes a record holds the record's. So what a pass shows while those are
// unlocked, and the same before and after it, is no change half done: that is what Fault::settled
// says. Only units that a transaction may have allocated, or may be about to free, tell nothing in
// one pass.
//
// The node's thread 0 alone. Yields between groups and pages.
class IndexAudit {
 public:
  // `home` is whether a key of that hash belongs on this node; `awaited` whether the node itself is
  // going to free the slot.
  using OfHash = std::function<bool(uint64_t hash)>;
  using OfSlot = std::function<bool(uint64_t slot)>;
  IndexAudit(Scheduler& scheduler, const OwnedRegion& region, const Arena& arena,
             const Directory& directory, OfHash home, OfSlot awaited)
      : scheduler_(scheduler),
        region_(region),
        arena_(arena),
        directory_(directory),
        walk_(region, arena),
        home_(std::move(home)),
        awaited_(std::move(awaited)) {}

  // kNotFound: there is no such table (any more).
  Status audit_table(TableId id, AuditReport& report);

 private:
  // What a finding in one group rests on.
  struct GroupLook {
    uint64_t offset = 0;
    Header gap{};
    uint64_t root_slot = 0;
  };
  // A header whose record or group nothing is changing: not locked, but by readers.
  static bool at_rest(const Header& header);
  static bool same(const Header& before, const Header& after);
  bool settled(uint64_t offset, const Header& before) const;

  Status audit_groups(TableId id, AuditReport& report);
  void audit_root_slot(const DirectoryEntry& table, uint64_t i, AuditReport& report);
  void audit_group(const DirectoryEntry& table, const GroupLook& look, AuditReport& report);
  void audit_chain(const DirectoryEntry& table, const GroupLook& look, uint32_t bucket,
                   AuditReport& report);
  void audit_entry(const DirectoryEntry& table, const GroupLook& look, uint32_t bucket,
                   uint64_t place, uint64_t entry, AuditReport& report);
  void audit_record(const DirectoryEntry& table, uint64_t slot, const Header& header,
                    AuditReport& report);
  Status audit_slots(TableId id, AuditReport& report);
  void audit_unlinked(const DirectoryEntry& table, uint64_t slot, AuditReport& report);
  void audit_unlisted_group(const DirectoryEntry& table, uint64_t group, AuditReport& report);
  std::optional<std::string> key_of(const DirectoryEntry& table, uint64_t slot,
                                    const Header& header) const;

  Scheduler& scheduler_;
  const OwnedRegion& region_;
  const Arena& arena_;
  const Directory& directory_;
  const IndexWalk walk_;
  const OfHash home_;
  const OfSlot awaited_;
  std::vector<uint64_t> linked_;   // slots that an entry names
  std::vector<uint64_t> deleted_;  // those among them that are tombstones
};

}  // namespace rdmacc
