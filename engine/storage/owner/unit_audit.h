#pragma once
#include <functional>

#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/wire/audit_message.h"

namespace rdmacc {

// The owner's search for units of its node that are in use and that nothing leads to, of whatever
// table: the part of an audit (index_audit.h) that no single table answers for.
//
// Splits and drops wait meanwhile, and chains only grow, so a bucket, root array or group that was
// in use before the indexes were walked is met there, or leaked. What a transaction allocates or
// frees, slots and overflow blocks, is only reported: it is leaked if it outlives all transactions.
// Nor does the node hold any lock meanwhile: one of its own threads' that is there is forgotten.
//
// The node's thread 0 alone. Yields.
class UnitAudit {
 public:
  using OfSlot = std::function<bool(uint64_t slot)>;
  UnitAudit(Scheduler& scheduler, const OwnedRegion& region, const Arena& arena,
            const Directory& directory, HashIndexOwner& index, OfSlot awaited)
      : scheduler_(scheduler),
        region_(region),
        arena_(arena),
        directory_(directory),
        walk_(region, arena),
        index_(index),
        awaited_(std::move(awaited)) {}

  void run(AuditReport& report);

 private:
  struct Unit {
    uint64_t offset;
    PageKind kind;
    uint64_t identity;
  };
  uint64_t identity_of(PageKind kind, uint64_t offset) const;
  void list_units();
  void reach_index(const DirectoryEntry& table);
  void reach_group(uint64_t group);
  void reach_blocks();
  void judge(AuditReport& report) const;
  void judge_locks(AuditReport& report) const;

  Scheduler& scheduler_;
  const OwnedRegion& region_;
  const Arena& arena_;
  const Directory& directory_;
  const IndexWalk walk_;
  HashIndexOwner& index_;
  const OfSlot awaited_;
  std::vector<Unit> units_;
  std::vector<uint64_t> reached_;
};

}  // namespace rdmacc
