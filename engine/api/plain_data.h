#pragma once
#include <cstddef>
#include <cstdint>

#include "rdma/base/code.h"
#include "rdma/base/verb_counters.h"

// What the engine and the PostgreSQL side of the extension both name: numbers and plain structures,
// without a destructor that an error of PostgreSQL would pass over. It includes nothing but such
// headers and C's own (no base.h, which refuses postgres.h); tests/lint/tidy.py checks that.

namespace rdmacc {

// ---- Tables

using TableId = uint32_t;
constexpr TableId kNoTable = 0;

// What tells a table from all others, and its form.
struct TableSpec {
  uint64_t system_id = 0;
  uint32_t database = 0;
  uint32_t relfilenode = 0;
  uint32_t record_size = 64;  // inline record bytes: 2 + key + row, 16 .. 512, multiple of 8
  uint32_t history = 3;       // old versions that a slot has room for
  // Keys begin with kDistributionLengthBytes of length, the lower byte first, and a distribution
  // key: rows with equal ones are on one node, of whichever table that has any.
  bool has_distribution_key = false;
};
constexpr size_t kDistributionLengthBytes = 2;
constexpr size_t kKeyLengthBytes = 2;  // in front of a record's key

// The record size that takes no more memory than `record_bytes` do, and leaves none of it unused:
// slots are whole lines, the last of which also says where old versions are, if any are kept.
constexpr uint32_t kRecordInlineMax = 512;  // record bytes kept in the slot itself
constexpr uint32_t record_size_of_slot(uint32_t record_bytes, uint32_t history) {
  constexpr uint32_t kLine = 64, kWord = 8;
  const uint32_t reference = history > 0 ? kWord : 0;
  const uint32_t lines = (record_bytes + reference + kLine - 1) / kLine;
  const uint32_t size = lines * kLine - reference;
  return size < kRecordInlineMax ? size : kRecordInlineMax;
}

// Which tables to list: those that there are, or also those of which only some nodes have their
// part, half made or half dropped.
enum class TableList : uint8_t { kWhole, kWithParts };

// A table that is there, by the identity that its front end gave it.
struct ListedTable {
  TableId id = kNoTable;
  uint64_t system_id = 0;
  uint32_t database = 0;
  uint32_t relfilenode = 0;
  uint32_t record_size = 0;
  uint32_t history = 0;
  bool has_distribution_key = false;
};

struct TableToVerify {
  TableId table = kNoTable;
  bool ordered_index = false;  // its rows are the nodes of one (engine/index)
};

struct NodeStatistics {
  uint64_t region_bytes, backed_bytes, used_bytes;  // used: slots, blocks and index in use
  uint64_t tables, rows, splits, requests;
  uint64_t started_us;  // fabric clock
};

// ---- Rows

// What a row is locked for.
enum class RowLockMode : uint8_t {
  kNone,      // it is read, past early locks of others, under protocols that lock no reads
  kKeyShare,  // it is read if no other has locked it exclusively; a lock where the protocol locks
              // reads
  kShare,     // likewise, and locked together with others that share it
  kExclusive,
};

// What became of a row that was to be locked without waiting.
enum class RowLock : uint8_t {
  kGot,     // the row was read, and is locked if that was asked for and the protocol locks
  kBusy,    // another transaction holds it; nothing has changed
  kAbsent,  // there is no such row; its absence was read
};

enum class ScanMode : uint8_t {
  kSerializable,
  kNoWait,      // the same, but a lock of another transaction ends it at once
  kSkipLocked,  // rows that others hold are left out. What is seen is committed, whole, and no
                // part of the read set: lock it to rely on it
  kAsStored,    // every row as it is in memory, locked or not, and no part of the read set: for a
                // copy over which what commits meanwhile is written again. The row of one that is
                // being installed may be torn (not its key), or come twice
  kQuiet,       // of a table that no other transaction can begin to write to before this one ends,
                // which the caller sees to: the newest rows, whole, and no part of the read set. A
                // commit that still installs some is waited for, as by kSerializable. Where
                // transactions happen at a time that is theirs beforehand, one loses if some are
                // later. What else it reads has to be current when it commits
                // (Session::need_current_reads)
};

constexpr uint32_t kWholeRow = 0xFFFFFFFF;

// What a scan is to give of the rows that it reads. Its isolation is the same in any case.
struct ScanWants {
  // Bytes of each row's beginning, at least; longer ones may come cut.
  uint32_t row_bytes_max = kWholeRow;
  // Rows are likely to be written as they come: what was read of them is kept at hand for that, and
  // those that others have locked early are waited for. A mere reader passes them.
  bool to_write = false;
  // Those that are written are so before the next ones are asked for: what is written later, and
  // has been changed by another transaction since it was read, is known for that at the commit.
  bool writes_at_once = false;
  // How many rows there are, and no more.
  bool count_only = false;
};

// What sessions of other coordinators have to know of a transaction to read for it, as its guests
// (Session::host).
struct HostTicket {
  uint64_t ctts = 0;   // 0: of none
  uint64_t epoch = 0;  // of the gate
  uint16_t protocol = 0;
  uint16_t stages = 0;  // the hybrid code
};

// How two-phase locking without waiting locks what it only reads.
enum class LockMode : uint8_t { kExclusive = 0, kShared = 1 };

// What a worker's transaction waits for that is not the engine.
enum class Standstill : uint8_t {
  kNone,
  kForClient,  // the next command
  kForLock,    // of those that its server has besides the engine's
};
// How to tell of a worker; it raises nothing.
using StandstillOf = Standstill (*)(uint16_t worker);

}  // namespace rdmacc
