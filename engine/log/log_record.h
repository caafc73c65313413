#pragma once
#include <boost/container/small_vector.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "engine/log/in_doubt_list.h"
#include "engine/storage/layout/tuple.h"
#include "rdma/base/large_blocks.h"
#include "rdma/base/status.h"

// What a transaction changes, as its log record holds it: the one description that the Commit
// stage installs, the log carries to the backups, and resolution installs again for a coordinator
// that died (docs/protocols.md §5). Every copy of a log record holds the whole transaction.

namespace rdmacc {

enum class WriteKind : uint8_t {
  kUpdate = 1,     // new bytes for a live tuple
  kInsert = 2,     // a fresh slot becomes live
  kUnlink = 3,     // a tuple is deleted and its slot leaves the index
  kGap = 4,        // a gap header: entries set and cleared in its group
  kTombstone = 5,  // a version that says that the key is absent; the tuple stays in the index
};

// An 8-byte index entry to store, on the node of the gap header.
struct EntryWrite {
  uint64_t offset;
  uint64_t value;  // 0 clears it
};

// Of one group: nearly always one.
using EntryWrites = boost::container::small_vector<EntryWrite, 1>;

struct Write {
  GlobalAddress header;
  WriteKind kind = WriteKind::kUpdate;
  TableId table = kNoTable;
  uint64_t key_hash = 0;
  uint32_t incarnation = 0;  // that the header has while the transaction holds its lock
  GlobalAddress overflow;    // block for `record`, or null: inline
  std::string_view record;   // [key length 2][key][row]; deleted: without a row
  uint16_t record_size = 0;  // inline record bytes of the table's slots, and
  uint16_t history = 0;      // old versions in each, if the version before is to be kept
  EntryWrites entries;       // kGap
};

struct LogRecord {
  uint64_t lock_ctts = 0;  // what the lock words of all its headers hold
  uint64_t stamp = 0;      // wts of what it writes
  uint64_t lease = 0;      // SUNDIAL: logical time of the commit, wts and rts of what it writes
  uint8_t protocol = 0;
  Gtid gtid;                  // null: the log alone decides it
  LargeVector<Write> writes;  // in the order in which they must be installed: tuples, then gaps

  // For a part of a transaction: everything but the writes.
  void copy_head(const LogRecord& whole) {
    lock_ctts = whole.lock_ctts;
    stamp = whole.stamp;
    lease = whole.lease;
    protocol = whole.protocol;
    gtid = whole.gtid;
  }
};

// The record's bytes: how many they are, and where they go.
size_t encoded_bytes(const LogRecord& record);
void encode_to(const LogRecord& record, std::byte* out);
// Appends them to `out`.
void encode(const LogRecord& record, std::vector<std::byte>& out);
// The views in the result point into `bytes`. kCorrupt when they do not parse.
Result<LogRecord> decode_log_record(std::span<const std::byte> bytes);
// The same into a record whose memory is used again.
Status decode_log_record(std::span<const std::byte> bytes, LogRecord& record);

}  // namespace rdmacc
