#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/storage/layout/tuple.h"
#include "engine/storage/wire/messages.h"

// What the owner of a part of an index says of it when it is asked to audit it (index_audit.h).

namespace rdmacc {

enum class FaultKind : uint8_t {
  kRoot = 0,     // a root array, or a slot of it that names no group which claims its bits
  kGroup,        // a group of the table that its root array does not lead to
  kChain,        // a chain of buckets that is broken
  kWrongNode,    // an entry of a key whose partition another node keeps
  kWrongGroup,   // an entry in a group that does not claim its hash
  kWrongBucket,  // an entry in another home bucket than that of its hash
  kWrongTag,     // an entry whose tag is not that of the hash
  kTwice,        // a record that two entries of a group name
  kNoRecord,     // an entry that names no live record of the table
  kWrongKey,     // a record whose key has another hash than its header says
  kLostRow,      // a live record that no look-up finds
  kLeakedSlot,   // in use, without a row, and linked nowhere
  kLeakedBlock,  // an overflow block that no record refers to
  kLeakedUnit,   // a bucket, group or root array that no index leads to
  kOwnLock,      // a lock of one of the node's threads, none of which is changing an index
  kLast = kOwnLock,
};
const char* fault_name(FaultKind kind);
// A transaction under way may own what looks like this: only one that outlives all of them is one.
constexpr bool outlived_to_be_sure(FaultKind kind) {
  return kind == FaultKind::kLeakedSlot || kind == FaultKind::kLeakedBlock;
}

// Something that was not as it should be, as one look showed it.
struct Fault {
  FaultKind kind = FaultKind::kRoot;
  // Nothing that the look rests on was locked or changed meanwhile: no change was half done.
  bool settled = false;
  TableId table = kNoTable;
  uint64_t offset = 0;    // of the header, the entry, the unit or the root slot
  uint64_t identity = 0;  // tells this from another fault at the same place
  uint64_t detail = 0;    // the entry's value, a group's bits, what the slot names
  std::string key;        // of the record; empty where it is not known
};

// The most that one answer tells; `faults_seen` counts all.
constexpr uint32_t kFaultsPerAudit = 1024;
constexpr uint64_t kFaultKeyBytesPerAudit = 512 * 1024;
static_assert(kFaultsPerAudit * 64 + kFaultKeyBytesPerAudit < kMaxMessageBytes);

struct AuditReport {
  uint64_t epoch = 0;  // of reclamation, as seen after the audit; 0: not known
  uint64_t rows = 0;   // live records that entries name, tombstones not counted
  uint64_t entries = 0, groups = 0, slots = 0;
  uint64_t faults_seen = 0;
  std::vector<Fault> faults;

  void add(Fault fault);
  void write(std::vector<std::byte>& out) const;
  bool parse(std::span<const std::byte> in);

 private:
  uint64_t key_bytes_ = 0;  // of all faults
};

}  // namespace rdmacc
