/* PostgreSQL's COPY reads the messages of the client's protocol itself, and nothing can be put in
 * between. Where it believes that there is no client it reads the C library's `stdin` in their
 * place, in the same formats: that is a stream of ours while it runs. Its belief lasts until it
 * reads the first time, so that what it tells and raises from there on goes to the client as
 * always. */
#include "pg_rdmacc/query/copied_rows.h"

#include "pg_rdmacc/ddl/exclusive_load.h"
#include "pg_rdmacc/query/client_messages.h"
#include "pg_rdmacc/relation/access_method.h"

#include <stdio_ext.h>

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

namespace {

constexpr Size kBufferBytes = 64 * 1024; /* as much as COPY reads at once */
constexpr long kLookMs = 1000; /* between looks at whether others wait for what a client holds up */

/* One COPY that is being run. */
struct CopyInput {
  const CopyStmt* statement;
  RdmaccSent* sent;
  int given;              /* bytes of those that are kept */
  StringInfoData message; /* the client's last one */
  CommandDest output;     /* where messages go, except before the first read */
  bool begun;             /* it has read */
  Oid exclusive;          /* the table, if others wait for it */
  FILE* previous_stdin;
  char* buffer; /* the stream's */
};

bool is_binary(const CopyStmt* copy) {
  bool binary = false;
  ListCell* cell;
  foreach (cell, copy->options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "format") == 0) {
      binary = strcmp(defGetString(option), "binary") == 0;
    }
  }
  return binary;
}

/* COPY has locked the table by now. */
int count_columns(const CopyStmt* copy) {
  Relation table = table_openrv(copy->relation, NoLock);
  const int count = list_length(CopyGetAttnums(RelationGetDescr(table), table, copy->attlist));
  table_close(table, NoLock);
  return count;
}

/* CopyInResponse: the client may send. */
void ask_client(const CopyStmt* copy) {
  const int16 format = is_binary(copy) ? 1 : 0;
  const int columns = count_columns(copy);
  StringInfoData message;
  pq_beginmessage(&message, 'G');
  pq_sendbyte(&message, static_cast<uint8>(format));
  pq_sendint16(&message, static_cast<uint16>(columns));
  for (int i = 0; i < columns; i++) pq_sendint16(&message, static_cast<uint16>(format));
  pq_endmessage(&message);
  pq_flush();
}

void raise_lost_client(void) {
  ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                  errmsg("unexpected EOF on client connection with an open transaction")));
}

bool others_wait_for(Oid table) {
  Relation relation = table_open(table, NoLock);
  bool wait = LockHasWaitersRelation(relation, AccessExclusiveLock);
  ListCell* cell;
  foreach (cell, RelationGetIndexList(relation)) {
    Relation index = index_open(lfirst_oid(cell), NoLock);
    wait = wait || LockHasWaitersRelation(index, AccessExclusiveLock);
    index_close(index, NoLock);
  }
  table_close(relation, NoLock);
  return wait;
}

/* The type of the next message. A client that reads the table by another connection before it sends
 * more would wait for itself. */
int await_message(Oid table) {
  const TimestampTz begin = GetCurrentTimestamp();
  unsigned char type = 0;
  int got = 0;
  while ((got = pq_getbyte_if_available(&type)) == 0) {
    WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                      MyProcPort->sock, kLookMs, WAIT_EVENT_CLIENT_READ);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    if (!TimestampDifferenceExceeds(begin, GetCurrentTimestamp(), rdmacc_gate_timeout_ms)) continue;
    if (!others_wait_for(table)) continue;
    pq_endmsgread();
    ereport(
        ERROR,
        (errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
         errmsg("canceling COPY, since its client sends nothing while others wait for its table"),
         errhint("With rdmacc.exclusive_loads = off they do not wait for it.")));
  }
  return got < 0 ? EOF : type;
}

/* A message whole, whatever a cancel says meanwhile. Its type. `exclusive`: a table for which
 * others wait, or InvalidOid. */
int read_message(StringInfo message, Oid exclusive) {
  HOLD_CANCEL_INTERRUPTS();
  pq_startmsgread();
  const int type = OidIsValid(exclusive) ? await_message(exclusive) : pq_getbyte();
  if (type == EOF) raise_lost_client();
  if (type == 0 || strchr("dcfHS", type) == nullptr) {
    ereport(FATAL, (errcode(ERRCODE_PROTOCOL_VIOLATION),
                    errmsg("unexpected message type 0x%02X during COPY from stdin", type)));
  }
  if (pq_getmessage(message, type == 'd' ? PQ_LARGE_MESSAGE_LIMIT : PQ_SMALL_MESSAGE_LIMIT) != 0) {
    raise_lost_client();
  }
  RESUME_CANCEL_INTERRUPTS();
  return type;
}

/* False at the end of what the client sends. */
bool receive(CopyInput* input) {
  for (;;) {
    const int type = read_message(&input->message, input->exclusive);
    CHECK_FOR_INTERRUPTS();
    switch (type) {
      case 'd':
        if (input->message.len == 0) break;
        rdmacc_journal_keep_copied(input->sent, input->message.data, input->message.len);
        return true;
      case 'c':
        resetStringInfo(&input->message);
        input->sent->copied_whole = true;
        return false;
      case 'f':
        ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED),
                        errmsg("COPY from stdin failed: %s", pq_getmsgstring(&input->message))));
        break;
      default: /* Flush and Sync, of clients that do not wait for an answer */
        break;
    }
  }
}

/* What the client sends first, up to so much: of so much it may load the table exclusively. */
void look_ahead(CopyInput* input, Oid table) {
  CHECK(input->sent->copied == nullptr && whereToSendOutput == DestRemote);
  rdmacc_journal_keep_copied(input->sent, "", 0);
  ask_client(input->statement);
  int received = 0;
  while (rdmacc_journal_is_open() && received < RDMACC_EXCLUSIVE_LOAD_BYTES && receive(input)) {
    received += input->message.len;
    /* What is kept is read from there. */
    if (rdmacc_journal_is_open()) input->message.cursor = input->message.len;
  }
  if (received < RDMACC_EXCLUSIVE_LOAD_BYTES) return;
  if (rdmacc_load_exclusively(table)) input->exclusive = table;
}

void begin_to_read(CopyInput* input) {
  input->begun = true;
  whereToSendOutput = input->output;
  if (input->sent->copied != nullptr) return; /* it has been asked by an earlier attempt */
  if (input->sent->ended) return;             /* with an error, before it was asked */
  CHECK(whereToSendOutput == DestRemote);
  rdmacc_journal_keep_copied(input->sent, "", 0);
  ask_client(input->statement);
}

int give(char* buffer, size_t size, const char* bytes, int* from, int end) {
  CHECK(*from < end);
  const int count = static_cast<int>(Min(size, static_cast<size_t>(end - *from)));
  memcpy(buffer, bytes + *from, static_cast<size_t>(count));
  *from += count;
  return count;
}

/* The stream's: bytes in `buffer`, 0 at the end. */
ssize_t read_copied(void* cookie, char* buffer, size_t size) {
  auto* input = static_cast<CopyInput*>(cookie);
  if (!input->begun) begin_to_read(input);
  const StringInfoData* kept = input->sent->copied;
  if (kept == nullptr) return 0;
  if (input->given < kept->len) return give(buffer, size, kept->data, &input->given, kept->len);
  CHECK(input->given == kept->len);
  StringInfo message = &input->message;
  if (message->cursor == message->len) {
    if (input->sent->ended || input->sent->copied_whole || !receive(input)) return 0;
    input->given = kept->len;
    message->cursor = 0;
  }
  return give(buffer, size, message->data, &message->cursor, message->len);
}

/* COPY stops at an end-of-data line, which more may follow. */
void drain(CopyInput* input) {
  char rest[1024];
  while (read_copied(input, rest, sizeof rest) > 0) CHECK_FOR_INTERRUPTS();
}

bool runs_copy;

FILE* open_stream(CopyInput* input) {
  const cookie_io_functions_t functions = {
      .read = read_copied, .write = nullptr, .seek = nullptr, .close = nullptr};
  FILE* stream = fopencookie(input, "r", functions);
  if (stream == nullptr) ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
  /* An error leaves fread() by longjmp(), which would not unlock the stream. */
  __fsetlocking(stream, FSETLOCKING_BYCALLER);
  setvbuf(stream, input->buffer, _IOFBF, kBufferBytes);
  return stream;
}

void end_input(CopyInput* input) {
  CHECK(stdin != input->previous_stdin);
  fclose(stdin);
  stdin = input->previous_stdin;
  whereToSendOutput = input->output;
  pfree(input->buffer);
  pfree(input->message.data);
}

}  // namespace

bool rdmacc_runs_copy(void) { return runs_copy; }

const CopyStmt* rdmacc_copy_from_client(const Node* node) {
  if (!IsA(node, CopyStmt)) return nullptr;
  const auto* copy = reinterpret_cast<const CopyStmt*>(node);
  const bool from_client = copy->is_from && copy->filename == nullptr && !copy->is_program;
  return from_client ? copy : nullptr;
}

bool rdmacc_copy_may_come_again(const CopyStmt* copy, bool alone) {
  CHECK(copy->is_from && copy->relation != nullptr);
  if (whereToSendOutput != DestRemote || !OidIsValid(rdmacc_access_method())) return false;
  Relation table = table_openrv_extended(copy->relation, RowExclusiveLock, true);
  if (table == nullptr) return true;
  const TriggerDesc* triggers = table->trigdesc;
  const bool may_lose = triggers != nullptr || rdmacc_is_ours(table) ||
                        table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
  /* What these triggers say comes before COPY reads, when it believes that there is no client. */
  const bool speaks_first = triggers != nullptr && triggers->trig_insert_before_statement;
  table_close(table, NoLock);
  return !speaks_first && (may_lose || !alone);
}

void rdmacc_run_copy_from_client(const CopyStmt* statement, RdmaccSent* sent, void (*run)(void*),
                                 void* argument) {
  CHECK(statement->is_from && statement->relation != nullptr && sent != nullptr);
  const MemoryContext context = CurrentMemoryContext;
  CopyInput input = {};
  input.statement = statement;
  input.sent = sent;
  input.output = whereToSendOutput;
  input.previous_stdin = stdin;
  input.buffer = static_cast<char*>(palloc(kBufferBytes));
  initStringInfo(&input.message);
  const bool first = sent->copied == nullptr && rdmacc_journal_is_alone();
  const Oid table = first ? rdmacc_exclusive_target_of_copy(statement) : InvalidOid;
  if (OidIsValid(table)) look_ahead(&input, table);
  stdin = open_stream(&input);
  whereToSendOutput = DestNone;
  PG_TRY();
  {
    runs_copy = true;
    run(argument);
    drain(&input);
    runs_copy = false;
  }
  PG_CATCH();
  {
    runs_copy = false;
    const bool told = input.begun;
    end_input(&input);
    if (told) PG_RE_THROW();
    /* Raised anew: it has been noted that the client is not to see it. */
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    ThrowErrorData(error);
  }
  PG_END_TRY();
  end_input(&input);
}
