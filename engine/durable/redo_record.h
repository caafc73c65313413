#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "engine/log/log_record.h"
#include "engine/storage/wire/storage_service.h"

// The records of a node's log file and of its checkpoints: rows by their keys, whatever their
// places in memory were. A write counts if its stamp is the greatest of its key, so they may be
// replayed in any order; tables come and go in the order of the file.

namespace rdmacc {

enum class RedoKind : uint8_t {
  kWrites = 1,   // of a committed transaction, or loaded; those of other nodes too
  kCreated = 2,  // a table
  kDropped = 3,
  kRow = 4,  // of a checkpoint: as it was in memory
  kEnd = 5,  // of a checkpoint: it is whole
  // Another node has these transactions on its own disk: its part need not come from here.
  kCovered = 6,
  // Of a transaction that another system decides, and that is prepared: nothing of it counts before
  // its writes follow under kWrites, or kDecided.
  kPrepared = 7,
  kDecided = 8,
};

struct RedoWrite {
  NodeId node = 0;  // that stores the key
  TableId table = kNoTable;
  bool deleted = false;
  std::string_view key;
  std::string_view row;
};

struct RedoWrites {
  uint64_t stamp = 0;
  uint64_t lock_ctts = 0;  // names the transaction's entry in its ring; 0: it has none
  std::vector<RedoWrite> writes;
};

// A checkpoint's row, or a log's write: views.
struct RedoRow {
  TableId table = kNoTable;
  uint64_t stamp = 0;
  std::string_view key;
  std::string_view row;
};

struct RedoEnd {
  uint64_t rows = 0;
  uint64_t tables = 0;
};

struct RedoPrepared {
  Gtid gtid;
  RedoWrites writes;
};

struct RedoDecided {
  uint64_t lock_ctts = 0;
  bool committed = false;
};

struct RedoCovered {
  NodeId by = 0;
  std::vector<uint64_t> lock_ctts;
};

// What a log record changes; its gap headers are nothing that lasts. Views into the record.
// kCorrupt: a key is missing.
Result<RedoWrites> redo_of(const LogRecord& record);

void encode(const RedoWrites& writes, std::vector<std::byte>& out);
void encode(const ListedTable& table, std::vector<std::byte>& out);
void encode(const RedoRow& row, std::vector<std::byte>& out);
void encode(const RedoEnd& end, std::vector<std::byte>& out);
void encode(const RedoCovered& covered, std::vector<std::byte>& out);
void encode(const RedoPrepared& prepared, std::vector<std::byte>& out);
void encode(const RedoDecided& decided, std::vector<std::byte>& out);
void encode_dropped(TableId table, std::vector<std::byte>& out);

// kCorrupt when they do not parse.
Status decode(std::span<const std::byte> in, RedoWrites& writes);
Status decode(std::span<const std::byte> in, ListedTable& table);
Status decode(std::span<const std::byte> in, RedoRow& row);
Status decode(std::span<const std::byte> in, RedoEnd& end);
Status decode(std::span<const std::byte> in, RedoCovered& covered);
Status decode(std::span<const std::byte> in, RedoPrepared& prepared);
Status decode(std::span<const std::byte> in, RedoDecided& decided);
Status decode_dropped(std::span<const std::byte> in, TableId& table);

}  // namespace rdmacc
