#include "pg_rdmacc/wal/redo_record.h"

extern "C" {
#include "access/rmgr.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "lib/stringinfo.h"
#include "replication/message.h"
#include "utils/memutils.h"
}

namespace {

constexpr uint32 kMagic = 0x52444d41; /* "RDMA" */
constexpr uint16 kVersion = 4;
char prefix[] = "rdmacc";
constexpr uint32 kDeleted = UINT32_C(1) << 31; /* in a write's key_bytes */
constexpr Size kKeptBytes = 256 * 1024;        /* of the buffer, between two transactions */

struct WriteHead {
  uint32 table;
  uint32 key_bytes;
  uint32 row_bytes;
};

StringInfoData buffer; /* in TopMemoryContext */

void begin_buffer(void) {
  if (buffer.data != nullptr && static_cast<Size>(buffer.maxlen) > kKeptBytes) {
    pfree(buffer.data);
    buffer.data = nullptr;
  }
  if (buffer.data == nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
    initStringInfo(&buffer);
    MemoryContextSwitchTo(previous);
  }
  resetStringInfo(&buffer);
}

void add(const void* data, Size bytes) {
  appendBinaryStringInfo(&buffer, static_cast<const char*>(data), static_cast<int>(bytes));
}

RdmaccRedoHead head_of(RdmaccRedoKind kind) {
  RdmaccRedoHead head = {};
  head.magic = kMagic;
  head.version = kVersion;
  head.kind = static_cast<uint8>(kind);
  head.last = true;
  return head;
}

XLogRecPtr insert(RdmaccRedoHead head) {
  xl_logical_message message = {};
  message.dbId = InvalidOid;
  message.transactional = false;
  message.prefix_size = sizeof(prefix);
  message.message_size = sizeof(head) + static_cast<Size>(buffer.len);
  XLogBeginInsert();
  XLogRegisterData(reinterpret_cast<char*>(&message), SizeOfLogicalMessage);
  XLogRegisterData(prefix, sizeof(prefix));
  XLogRegisterData(reinterpret_cast<char*>(&head), sizeof(head));
  if (buffer.len > 0) XLogRegisterData(buffer.data, buffer.len);
  /* An idle server makes no checkpoint because of its last one. */
  if (head.kind == RDMACC_REDO_MARK) XLogSetRecordFlags(XLOG_MARK_UNIMPORTANT);
  return XLogInsert(RM_LOGICALMSG_ID, XLOG_LOGICAL_MESSAGE);
}

void add_write(const BridgeWrite* write) {
  CHECK(write->key.size > 0 && write->key.size < kDeleted);
  WriteHead head;
  head.table = write->table;
  head.key_bytes = static_cast<uint32>(write->key.size) | (write->deleted ? kDeleted : 0);
  head.row_bytes = write->deleted ? 0 : static_cast<uint32>(write->row.size);
  add(&head, sizeof(head));
  add(write->key.data, write->key.size);
  if (!write->deleted) add(write->row.data, write->row.size);
}

}  // namespace

XLogRecPtr rdmacc_redo_insert_writes(RdmaccRedoKind kind, const BridgeWrite* writes, size_t count,
                                     uint64 transaction, uint64 xid) {
  CHECK(count > 0);
  CHECK(kind == RDMACC_REDO_WRITES || (kind == RDMACC_REDO_LOADED && xid == 0));
  RdmaccRedoHead head = head_of(kind);
  head.transaction = transaction;
  head.xid = xid;
  XLogRecPtr end = InvalidXLogRecPtr;
  size_t at = 0;
  while (at < count) {
    begin_buffer();
    head.count = 0;
    while (at < count && buffer.len < RDMACC_REDO_CHUNK_BYTES) {
      add_write(&writes[at++]);
      head.count++;
    }
    head.last = at == count;
    end = insert(head);
    head.chunk++;
  }
  return end;
}

XLogRecPtr rdmacc_redo_insert_table(RdmaccRedoKind kind, const rdmacc::ListedTable* table) {
  CHECK(kind == RDMACC_REDO_CREATE || kind == RDMACC_REDO_DROP);
  begin_buffer();
  add(table, sizeof(*table));
  return insert(head_of(kind));
}

XLogRecPtr rdmacc_redo_insert_mark(void) {
  begin_buffer();
  return insert(head_of(RDMACC_REDO_MARK));
}

/* ---- Reading */

void rdmacc_redo_corrupt(XLogRecPtr from) {
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                  errmsg("the record of rdmacc rows at %X/%X makes no sense", RDMACC_LSN(from))));
}

namespace {

void check_version(const RdmaccRedoHead& head, XLogRecPtr from) {
  if (head.magic != kMagic || head.version == kVersion) return;
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the record of rdmacc rows at %X/%X was written by another version of rdmacc",
                  RDMACC_LSN(from)),
           errhint("Dump the database with that version, and restore it with this one.")));
}

}  // namespace

RdmaccRedoKind rdmacc_redo_read(XLogReaderState* reader, RdmaccRedoRecord* record) {
  if (XLogRecGetRmid(reader) != RM_LOGICALMSG_ID) return RDMACC_REDO_NONE;
  const Size bytes = XLogRecGetDataLen(reader);
  xl_logical_message message;
  if (bytes < SizeOfLogicalMessage) return RDMACC_REDO_NONE;
  memcpy(&message, XLogRecGetData(reader), SizeOfLogicalMessage); /* not aligned */
  const char* payload = XLogRecGetData(reader) + SizeOfLogicalMessage;
  if (OidIsValid(message.dbId) || message.prefix_size != sizeof(prefix) ||
      bytes - SizeOfLogicalMessage != message.prefix_size + message.message_size ||
      memcmp(payload, prefix, sizeof(prefix)) != 0) {
    return RDMACC_REDO_NONE;
  }
  payload += sizeof(prefix);
  if (message.message_size < sizeof(record->head)) rdmacc_redo_corrupt(reader->ReadRecPtr);
  memcpy(&record->head, payload, sizeof(record->head));
  check_version(record->head, reader->ReadRecPtr);
  if (record->head.magic != kMagic || record->head.kind == RDMACC_REDO_NONE ||
      record->head.kind > RDMACC_REDO_LOADED) {
    rdmacc_redo_corrupt(reader->ReadRecPtr);
  }
  record->at = payload + sizeof(record->head);
  record->end = payload + message.message_size;
  const auto kind = static_cast<RdmaccRedoKind>(record->head.kind);
  if (kind == RDMACC_REDO_CREATE || kind == RDMACC_REDO_DROP) {
    if (record->end - record->at != static_cast<ptrdiff_t>(sizeof(record->table))) {
      rdmacc_redo_corrupt(reader->ReadRecPtr);
    }
    memcpy(&record->table, record->at, sizeof(record->table));
  }
  return kind;
}

bool rdmacc_redo_next(RdmaccRedoRecord* record, BridgeWrite* write) {
  if (record->at == record->end) return false;
  WriteHead head;
  const auto left = static_cast<Size>(record->end - record->at);
  if (left < sizeof(head)) rdmacc_redo_corrupt(InvalidXLogRecPtr);
  memcpy(&head, record->at, sizeof(head));
  const uint32 key_bytes = head.key_bytes & ~kDeleted;
  if (static_cast<uint64>(key_bytes) + head.row_bytes > left - sizeof(head)) {
    rdmacc_redo_corrupt(InvalidXLogRecPtr);
  }
  write->table = head.table;
  write->deleted = (head.key_bytes & kDeleted) != 0;
  write->key = {record->at + sizeof(head), key_bytes};
  write->row = {write->key.data + key_bytes, head.row_bytes};
  record->at = write->row.data + head.row_bytes;
  return true;
}
