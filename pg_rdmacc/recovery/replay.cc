/* A record decides by itself, or waits for the commit record of its XID; one of several, for the
 * last. What is still waiting at the end has not committed. */
#include "pg_rdmacc/recovery/replay.h"

#include "pg_rdmacc/recovery/loader.h"
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/wal/commit_log.h"

extern "C" {
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogutils.h"
#include "catalog/pg_control.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

/* What others wait for is told after so much. */
constexpr int kRecordsAtOnce = 1000;
constexpr uint64 kWritesAtOnce = 1000;
constexpr int kReadTriesMax = 100;
constexpr long kReadPauseUs = 100'000;

/* Records that wait, in memory; by their transaction's number, which is its in this WAL alone. */
struct Waiting {
  uint64 transaction;
  XLogRecPtr begin; /* of the first of them */
  List* records;    /* of palloc'ed RdmaccRedoRecord, with their bytes behind them */
};

/* And those that wait for an XID. */
struct WaitingXid {
  TransactionId xid;
  XLogRecPtr begin;
  List* records;
};

MemoryContext context; /* of all below */
HTAB* parts;
HTAB* by_xid;
ReadLocalXLogPageNoWaitPrivate pages;
XLogReaderState* reader;
XLogRecPtr next; /* where the next record begins, or a page on which it does */
bool found_first;
ReplayResult replayed;
uint64 lost; /* transactions that a crash of the server that wrote this WAL has cut off */

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
      replayed.writes++;
    }
    count++;
  }
  if (count != record.head.count) rdmacc_redo_corrupt(replayed.end);
}

void apply_all(List* records) {
  ListCell* cell;
  foreach (cell, records) apply(*static_cast<RdmaccRedoRecord*>(lfirst(cell)));
  list_free_deep(records);
  rdmacc_loader_end_transaction();
  replayed.transactions++;
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

void wait_for_xid(uint64 full_xid, XLogRecPtr begin, List* records) {
  const TransactionId xid = XidFromFullTransactionId(FullTransactionIdFromU64(full_xid));
  bool found = false;
  auto* waiting = static_cast<WaitingXid*>(hash_search(by_xid, &xid, HASH_ENTER, &found));
  waiting->records = found ? list_concat(waiting->records, records) : records;
  if (!found) waiting->begin = begin;
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
List* take_parts(const RdmaccRedoRecord* record, XLogRecPtr* begin) {
  bool found = false;
  auto* waiting =
      static_cast<Waiting*>(hash_search(parts, &record->head.transaction, HASH_FIND, &found));
  if (!found) return NIL;
  List* records = waiting->records;
  *begin = waiting->begin;
  hash_search(parts, &record->head.transaction, HASH_REMOVE, nullptr);
  return records;
}

void take_writes(const RdmaccRedoRecord* record) {
  if (record->head.last && record->head.chunk == 0 && record->head.xid == 0) {
    apply(*record);
    rdmacc_loader_end_transaction();
    replayed.transactions++;
    return;
  }
  /* The first record of a number that an earlier life has used, and not come to an end with. */
  XLogRecPtr begin = InvalidXLogRecPtr;
  List* records = take_parts(record, &begin);
  if (record->head.chunk == 0) {
    list_free_deep(records);
    records = NIL;
    begin = reader->ReadRecPtr;
  }
  /* Its first ones lie before the beginning: then all that it wrote is in the checkpoint. */
  if (static_cast<uint32>(list_length(records)) != record->head.chunk) {
    list_free_deep(records);
    return;
  }
  records = lappend(records, copy_record(record));
  if (!record->head.last) {
    auto* waiting =
        static_cast<Waiting*>(hash_search(parts, &record->head.transaction, HASH_ENTER, nullptr));
    waiting->records = records;
    waiting->begin = begin;
  } else if (record->head.xid != 0) {
    wait_for_xid(record->head.xid, begin, records);
  } else {
    apply_all(records);
  }
}

void take_end_of_transaction(void) {
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

/* Whatever has not ended before never will. */
void forget_all_waiting(void) {
  HASH_SEQ_STATUS entries;
  hash_seq_init(&entries, parts);
  while (auto* waiting = static_cast<Waiting*>(hash_seq_search(&entries))) {
    list_free_deep(waiting->records);
    hash_search(parts, &waiting->transaction, HASH_REMOVE, nullptr);
  }
  hash_seq_init(&entries, by_xid);
  while (auto* waiting = static_cast<WaitingXid*>(hash_seq_search(&entries))) {
    list_free_deep(waiting->records);
    hash_search(by_xid, &waiting->xid, HASH_REMOVE, nullptr);
  }
}

/* The server that wrote this WAL has stopped, or recovered from its crash, or was promoted. */
void take_end_of_life(void) {
  const uint8 info = XLogRecGetInfo(reader) & ~XLR_INFO_MASK;
  if (info != XLOG_CHECKPOINT_SHUTDOWN && info != XLOG_END_OF_RECOVERY) return;
  lost += static_cast<uint64>(hash_get_num_entries(parts) + hash_get_num_entries(by_xid));
  forget_all_waiting();
}

void take(void) {
  switch (XLogRecGetRmid(reader)) {
    case RM_XACT_ID:
      return take_end_of_transaction();
    case RM_XLOG_ID:
      return take_end_of_life();
    default:
      break;
  }
  RdmaccRedoRecord record;
  switch (rdmacc_redo_read(reader, &record)) {
    case RDMACC_REDO_WRITES:
      take_writes(&record);
      break;
    case RDMACC_REDO_LOADED:
      apply(record);
      rdmacc_loader_end_transaction();
      break;
    case RDMACC_REDO_CREATE:
      rdmacc_log_note_changed(record.table.id);
      rdmacc_loader_create_table(&record.table);
      break;
    case RDMACC_REDO_DROP:
      rdmacc_log_note_changed(record.table.id);
      rdmacc_loader_drop_table(record.table.id);
      break;
    case RDMACC_REDO_MARK:
    case RDMACC_REDO_NONE:
      break;
  }
}

XLogReaderState* open_reader(void) {
  XLogReaderRoutine routine = {};
  routine.page_read = read_local_xlog_page_no_wait;
  routine.segment_open = wal_segment_open;
  routine.segment_close = wal_segment_close;
  XLogReaderState* opened = XLogReaderAllocate(wal_segment_size, nullptr, &routine, &pages);
  if (opened == nullptr) ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
  return opened;
}

[[noreturn]] void raise_unreadable(const char* failure) {
  if (!found_first && failure == nullptr) {
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("there is no WAL at %X/%X, where the rows of rdmacc tables begin",
                           RDMACC_LSN(next))));
  }
  ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                  errmsg("could not read WAL at %X/%X: %s", RDMACC_LSN(next),
                         failure != nullptr ? failure : "no reason")));
}

/* nullptr: there is none. */
XLogRecord* next_record(const char** failure) {
  if (!found_first) { /* `next` is a page, or a record */
    const XLogRecPtr first = XLogFindNextRecord(reader, next);
    if (first == InvalidXLogRecPtr) return nullptr;
    next = first;
    found_first = true;
    XLogBeginRead(reader, next);
  }
  char* reason = nullptr;
  XLogRecord* record = XLogReadRecord(reader, &reason);
  *failure = reason;
  return record;
}

/* nullptr: it is not there yet, or not all of it (`pages` says so), or cannot be read. Errors of
 * its file are no more than that. */
XLogRecord* try_to_read(const char** failure) {
  XLogRecord* volatile record = nullptr;
  MemoryContext inside = CurrentMemoryContext;
  *failure = nullptr;
  PG_TRY();
  { record = next_record(failure); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(inside);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    *failure = error->message;
  }
  PG_END_TRY();
  return record;
}

/* Where one record ends, the next one begins, but at the end of a page. */
XLogRecPtr behind_page_header(XLogRecPtr at) {
  if (at % XLOG_BLCKSZ != 0) return at;
  return at +
         (XLogSegmentOffset(at, wal_segment_size) == 0 ? SizeOfXLogLongPHD : SizeOfXLogShortPHD);
}

void begin_at_next(void) {
  pages = {};
  if (found_first) XLogBeginRead(reader, behind_page_header(next));
}

/* False: it is not there yet, or not all of it. A standby's files are replaced and renamed while
 * they are read; what cannot be read for some seconds is missing. */
bool read_record(void) {
  for (int tries = 0;; tries++) {
    const char* failure = nullptr;
    if (try_to_read(&failure) != nullptr) return true;
    if (pages.end_of_wal) return false;
    const bool may_pass = RecoveryInProgress() || rdmacc_has_followed();
    if (!may_pass || tries == kReadTriesMax) raise_unreadable(failure);
    if (ShutdownRequestPending) proc_exit(1);
    pg_usleep(kReadPauseUs);
    XLogReaderFree(reader);
    reader = open_reader();
    begin_at_next();
  }
}

}  // namespace

void rdmacc_replay_begin(XLogRecPtr from) {
  CHECK(from != InvalidXLogRecPtr && rdmacc_durability_status != nullptr && context == nullptr);
  context = AllocSetContextCreate(TopMemoryContext, "rdmacc replay", ALLOCSET_DEFAULT_SIZES);
  const MemoryContext previous = MemoryContextSwitchTo(context);
  replayed = {};
  replayed.end = next = from;
  found_first = false;
  lost = 0;
  parts = make_table("rdmacc parts", sizeof(uint64), sizeof(Waiting));
  by_xid = make_table("rdmacc xids", sizeof(TransactionId), sizeof(WaitingXid));
  reader = open_reader();
  MemoryContextSwitchTo(previous);
}

bool rdmacc_replay_some(void) {
  CHECK(context != nullptr);
  const MemoryContext previous = MemoryContextSwitchTo(context);
  const uint64 writes_before = replayed.writes;
  bool more = false;
  begin_at_next();
  for (int records = 0; !more && read_record(); records++) {
    replayed.end = next = reader->EndRecPtr;
    pg_atomic_write_u64(&rdmacc_durability_status->replayed_until, replayed.end);
    pg_atomic_write_u64(&rdmacc_durability_status->replayed_writes, replayed.writes);
    take();
    more = records == kRecordsAtOnce || replayed.writes - writes_before >= kWritesAtOnce ||
           ShutdownRequestPending;
  }
  rdmacc_loader_flush();
  MemoryContextSwitchTo(previous);
  return more;
}

void rdmacc_replay_rest(void) {
  while (rdmacc_replay_some()) {
    if (ShutdownRequestPending) proc_exit(1);
  }
}

XLogRecPtr rdmacc_replay_position(void) { return replayed.end; }

XLogRecPtr rdmacc_replay_waits_from(void) {
  XLogRecPtr first = replayed.end;
  HASH_SEQ_STATUS entries;
  hash_seq_init(&entries, parts);
  while (const auto* waiting = static_cast<Waiting*>(hash_seq_search(&entries))) {
    first = Min(first, waiting->begin);
  }
  hash_seq_init(&entries, by_xid);
  while (const auto* waiting = static_cast<WaitingXid*>(hash_seq_search(&entries))) {
    first = Min(first, waiting->begin);
  }
  return first;
}

void rdmacc_replay_end(ReplayResult* result) {
  CHECK(context != nullptr);
  replayed.undecided =
      lost + static_cast<uint64>(hash_get_num_entries(parts) + hash_get_num_entries(by_xid));
  *result = replayed;
  XLogReaderFree(reader);
  MemoryContextDelete(context);
  context = nullptr;
}
