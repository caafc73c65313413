/* What PostgreSQL's WAL holds of rdmacc tables: records of its resource manager for logical
 * messages, without a database, so that no logical slot decodes them, a server without this library
 * recovers over them, and pg_waldump shows them.
 *
 * A commit's writes are whole rows by their keys. Locks are held while they are inserted, so that
 * the order of records is the order of each key's versions: replayed in that order, over any state
 * that is as old as the first of them, they end with the newest rows. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/xlogdefs.h"
#include "access/xlogreader.h"

/* A position for "%X/%X", as PostgreSQL writes it (its own macro is C alone). */
#define RDMACC_LSN(position) static_cast<uint32>((position) >> 32), static_cast<uint32>(position)

typedef enum RdmaccRedoKind {
  RDMACC_REDO_NONE = 0, /* no record of ours */
  RDMACC_REDO_WRITES,   /* of a transaction; large ones come in several records */
  RDMACC_REDO_CREATE,   /* a table of the engine was made */
  RDMACC_REDO_DROP,     /* or is about to go */
  RDMACC_REDO_MARK,     /* says nothing */
  RDMACC_REDO_LOADED    /* rows in place in a table that goes if its maker does not commit */
} RdmaccRedoKind;

/* Bytes of rows after which a transaction goes on in another record. */
#define RDMACC_REDO_CHUNK_BYTES (4 * 1024 * 1024)

typedef struct RdmaccRedoHead {
  uint32 magic;
  uint16 version;
  uint8 kind;
  bool last; /* of its transaction; without the last one it has not committed */
  uint64 transaction;
  /* PostgreSQL's full transaction id, whose commit record decides; 0: this record does. */
  uint64 xid;
  uint32 count; /* of writes */
  uint32 chunk; /* 0, 1, ... */
} RdmaccRedoHead;

/* Inserts a transaction's writes, or rows that are loaded, which nothing decides about (xid 0);
 * where the last record ends. Nothing is flushed. */
XLogRecPtr rdmacc_redo_insert_writes(RdmaccRedoKind kind, const BridgeWrite* writes, size_t count,
                                     uint64 transaction, uint64 xid);
/* A table is there before any row of it is logged. */
XLogRecPtr rdmacc_redo_insert_table(RdmaccRedoKind kind, const rdmacc::ListedTable* table);
/* A position in the WAL that can be flushed to. */
XLogRecPtr rdmacc_redo_insert_mark(void);

/* ---- Reading */

typedef struct RdmaccRedoRecord {
  RdmaccRedoHead head;
  rdmacc::ListedTable table; /* CREATE and DROP */
  const char* at;            /* WRITES: the next of head.count */
  const char* end;
} RdmaccRedoRecord;

/* What the reader's record is; views of its memory. An ERROR when it is ours and makes no sense, or
 * when another version of rdmacc has written it. */
RdmaccRedoKind rdmacc_redo_read(XLogReaderState* reader, RdmaccRedoRecord* record);
/* The next write; false at the end. */
bool rdmacc_redo_next(RdmaccRedoRecord* record, BridgeWrite* write);
/* Raises: the record at `from` is damaged. */
[[noreturn]] void rdmacc_redo_corrupt(XLogRecPtr from);
}
