/* A record decides by itself, or waits for the commit record of its XID; one of several, for the
 * last. What is still waiting at the end has not committed. */
#include "pg_rdmacc/recovery/replay.h"

#include "pg_rdmacc/recovery/loader.h"
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/wal/commit_log.h"

extern "C" {
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogutils.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

/* Records that wait, in memory; by their transaction's number, which is its in this WAL alone. */
struct Waiting {
  uint64 transaction;
  List* records; /* of palloc'ed RdmaccRedoRecord, with their bytes behind them */
};

/* And those that wait for an XID. */
struct WaitingXid {
  TransactionId xid;
  List* records;
};

HTAB* parts;
HTAB* by_xid;
ReplayResult* replayed;

HTAB* make_table(const char* name, Size key, Size entry) {
  HASHCTL control = {};
  control.keysize = key;
  control.entrysize = entry;
  control.hcxt = CurrentMemoryContext;
  return hash_create(name, 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void apply(RdmaccRedoRecord record) {
  BridgeWrite write;
  uint32 count = 0;
  while (rdmacc_redo_next(&record, &write)) {
    if (rdmacc_loader_add(&write)) {
      rdmacc_log_note_changed(write.table); /* its file is not the newest */
      replayed->writes++;
    }
    count++;
  }
  if (count != record.head.count) rdmacc_redo_corrupt(replayed->end);
}

void apply_all(List* records) {
  ListCell* cell;
  foreach (cell, records) apply(*static_cast<RdmaccRedoRecord*>(lfirst(cell)));
  list_free_deep(records);
  replayed->transactions++;
}

RdmaccRedoRecord* copy_record(const RdmaccRedoRecord* record) {
  const auto bytes = static_cast<Size>(record->end - record->at);
  auto* copy = static_cast<RdmaccRedoRecord*>(palloc(sizeof(RdmaccRedoRecord) + bytes));
  *copy = *record;
  char* data = reinterpret_cast<char*>(copy + 1);
  memcpy(data, record->at, bytes);
  copy->at = data;
  copy->end = data + bytes;
  return copy;
}

void wait_for_xid(uint64 full_xid, List* records) {
  const TransactionId xid = XidFromFullTransactionId(FullTransactionIdFromU64(full_xid));
  bool found = false;
  auto* waiting = static_cast<WaitingXid*>(hash_search(by_xid, &xid, HASH_ENTER, &found));
  waiting->records = found ? list_concat(waiting->records, records) : records;
}

void decide(TransactionId xid, bool committed) {
  bool found = false;
  auto* waiting = static_cast<WaitingXid*>(hash_search(by_xid, &xid, HASH_FIND, &found));
  if (!found) return;
  if (committed) {
    apply_all(waiting->records);
  } else {
    list_free_deep(waiting->records);
  }
  hash_search(by_xid, &xid, HASH_REMOVE, nullptr);
}

/* The records of this transaction so far, which come in one after the other. */
List* take_parts(const RdmaccRedoRecord* record) {
  bool found = false;
  auto* waiting =
      static_cast<Waiting*>(hash_search(parts, &record->head.transaction, HASH_FIND, &found));
  if (!found) return NIL;
  List* records = waiting->records;
  hash_search(parts, &record->head.transaction, HASH_REMOVE, nullptr);
  return records;
}

void take_writes(const RdmaccRedoRecord* record) {
  if (record->head.last && record->head.chunk == 0 && record->head.xid == 0) {
    apply(*record);
    replayed->transactions++;
    return;
  }
  /* The first record of a number that an earlier life has used, and not come to an end with. */
  List* records = take_parts(record);
  if (record->head.chunk == 0) {
    list_free_deep(records);
    records = NIL;
  }
  /* Its first ones lie before the beginning: then all that it wrote is in the checkpoint. */
  if (static_cast<uint32>(list_length(records)) != record->head.chunk) return;
  records = lappend(records, copy_record(record));
  if (!record->head.last) {
    auto* waiting =
        static_cast<Waiting*>(hash_search(parts, &record->head.transaction, HASH_ENTER, nullptr));
    waiting->records = records;
  } else if (record->head.xid != 0) {
    wait_for_xid(record->head.xid, records);
  } else {
    apply_all(records);
  }
}

void take_end_of_transaction(XLogReaderState* reader) {
  const uint8 info = XLogRecGetInfo(reader);
  char* data = XLogRecGetData(reader);
  switch (info & XLOG_XACT_OPMASK) {
    case XLOG_XACT_COMMIT: {
      xl_xact_parsed_commit commit;
      ParseCommitRecord(info, reinterpret_cast<xl_xact_commit*>(data), &commit);
      decide(XLogRecGetXid(reader), true);
      break;
    }
    case XLOG_XACT_ABORT:
      decide(XLogRecGetXid(reader), false);
      break;
    default:
      break; /* what is prepared has no rows of rdmacc tables */
  }
}

void take(XLogReaderState* reader) {
  if (XLogRecGetRmid(reader) == RM_XACT_ID) {
    take_end_of_transaction(reader);
    return;
  }
  RdmaccRedoRecord record;
  switch (rdmacc_redo_read(reader, &record)) {
    case RDMACC_REDO_WRITES:
      take_writes(&record);
      break;
    case RDMACC_REDO_LOADED:
      apply(record);
      break;
    case RDMACC_REDO_CREATE:
      rdmacc_loader_create_table(&record.table);
      break;
    case RDMACC_REDO_DROP:
      rdmacc_loader_drop_table(record.table.id);
      break;
    case RDMACC_REDO_MARK:
    case RDMACC_REDO_NONE:
      break;
  }
}

XLogReaderState* open_reader(ReadLocalXLogPageNoWaitPrivate* state) {
  XLogReaderRoutine routine = {};
  routine.page_read = read_local_xlog_page_no_wait;
  routine.segment_open = wal_segment_open;
  routine.segment_close = wal_segment_close;
  XLogReaderState* reader = XLogReaderAllocate(wal_segment_size, nullptr, &routine, state);
  if (reader == nullptr) ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
  return reader;
}

/* All records from `from` on. */
void read_all(XLogReaderState* reader, ReadLocalXLogPageNoWaitPrivate* state, XLogRecPtr from) {
  const XLogRecPtr first = XLogFindNextRecord(reader, from);
  if (first == InvalidXLogRecPtr) {
    if (state->end_of_wal) return;
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("there is no WAL at %X/%X, where the rows of rdmacc tables begin",
                           RDMACC_LSN(from))));
  }
  XLogBeginRead(reader, first);
  while (true) {
    char* failure = nullptr;
    if (XLogReadRecord(reader, &failure) == nullptr) {
      if (state->end_of_wal) return;
      ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                      errmsg("could not read WAL at %X/%X: %s", RDMACC_LSN(reader->EndRecPtr),
                             failure != nullptr ? failure : "no reason")));
    }
    if (ShutdownRequestPending) proc_exit(1);
    replayed->end = reader->EndRecPtr;
    pg_atomic_write_u64(&rdmacc_durability_status->replayed_until, reader->EndRecPtr);
    pg_atomic_write_u64(&rdmacc_durability_status->replayed_writes, replayed->writes);
    take(reader);
  }
}

}  // namespace

void rdmacc_replay(XLogRecPtr from, ReplayResult* result) {
  CHECK(from != InvalidXLogRecPtr && rdmacc_durability_status != nullptr);
  MemoryContext context =
      AllocSetContextCreate(TopMemoryContext, "rdmacc replay", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext previous = MemoryContextSwitchTo(context);
  *result = {};
  result->end = from;
  replayed = result;
  parts = make_table("rdmacc parts", sizeof(uint64), sizeof(Waiting));
  by_xid = make_table("rdmacc xids", sizeof(TransactionId), sizeof(WaitingXid));
  ReadLocalXLogPageNoWaitPrivate state = {};
  XLogReaderState* reader = open_reader(&state);
  read_all(reader, &state, from);
  rdmacc_loader_flush();
  result->undecided =
      static_cast<uint64>(hash_get_num_entries(parts) + hash_get_num_entries(by_xid));
  XLogReaderFree(reader);
  MemoryContextSwitchTo(previous);
  MemoryContextDelete(context);
}
