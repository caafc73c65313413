/* What the client has sent since its BEGIN, and what it was told, so that the block can be run
 * again (replay.h). A utility statement that is a transaction by itself has one, too.
 *
 * Invariants:
 * 1. Every statement that may have had an effect in the transaction is in the journal, in order, or
 *    the journal is spoiled: it is then good for nothing until the transaction ends.
 * 2. Only the last one may not have ended. */
#pragma once
#include "pg_rdmacc/query/told_rows.h"

extern "C" {
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "nodes/params.h"
#include "nodes/pg_list.h"
#include "utils/plancache.h"

/* What a function has drawn for it (noted_draws.h). */
typedef struct RdmaccDraw {
  Oid function;
  Oid object; /* a sequence, or none */
  Oid file;   /* of the sequence */
  char bytes[16];
} RdmaccDraw;

typedef struct RdmaccSent {
  const char* text; /* of this statement alone */
  /* Of one that was prepared by a message of its own, when the session's settings and tables may
   * have been others: what was made of its text then. NULL: the text is all there is to it. */
  CachedPlan* plan;
  bool plan_is_stale;      /* one of its tables, or a function, has changed since */
  TimestampTz prepared_at; /* of EXECUTE: when its statement was prepared (rdmacc_prepared_at) */
  ParamListInfo params;
  TimestampTz at;    /* the time of its statement_timestamp() */
  List* draws;       /* RdmaccDraw*, in the order in which they were drawn */
  int draws_given;   /* of them, since the statement has begun the last time */
  StringInfo copied; /* what the client has sent for COPY FROM STDIN; NULL before it was asked */
  bool copied_whole; /* that was all */
  RdmaccTold told;
  bool ended;     /* and has told all that it tells */
  bool cancelled; /* so: within a savepoint, with which all goes that it has done */
} RdmaccSent;

/* Where a statement stands in what the client has sent. */
typedef struct RdmaccStatementText {
  const char* source;
  int location; /* in bytes; -1 when unknown: all of it */
  int length;   /* 0: to the end */
} RdmaccStatementText;

/* A BEGIN of the client's has been executed. Nothing of its transaction has been before. */
void rdmacc_journal_begin(RdmaccStatementText text);

/* Of a statement that is a transaction by itself, and about to be run. */
void rdmacc_journal_begin_alone(void);
bool rdmacc_journal_is_alone(void);

/* The next statement, about to be run by the active portal. NULL if the journal does not have, or
 * does not take it. */
RdmaccSent* rdmacc_journal_add(RdmaccStatementText text, ParamListInfo params);

/* Appends it to the statement's draws. */
void rdmacc_journal_note_draw(RdmaccSent* sent, const RdmaccDraw* draw);

/* Appends bytes to what the client has sent for it, or spoils the journal where that is too much.
 */
void rdmacc_journal_keep_copied(RdmaccSent* sent, const char* bytes, int length);

/* Numbers of sequences that COPY gives its rows are not among the draws. */
bool rdmacc_journal_has_copied(void);

/* Something is being done in the block that cannot be done again. */
void rdmacc_journal_spoil(void);

/* The transaction has ended. */
void rdmacc_journal_forget(void);

/* All that was sent is in the journal, and has ended. */
bool rdmacc_journal_is_whole(void);
/* There is a journal, and nothing has spoiled it yet. */
bool rdmacc_journal_is_open(void);

/* Of BEGIN's transaction_timestamp(). */
TimestampTz rdmacc_journal_started_at(void);
/* On a standby, which may be promoted since. */
bool rdmacc_journal_started_in_recovery(void);
int rdmacc_journal_count(void);
RdmaccSent* rdmacc_journal_at(int index); /* 0: BEGIN, unless it is of one alone */
}
