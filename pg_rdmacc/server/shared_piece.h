/* Pieces of PostgreSQL's shared memory, each of which one file lays out and alone looks into. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

struct RdmaccSharedPiece {
  const char* name;
  /* When the server starts and its settings stand: may refuse that by FATAL. NULL: nothing to say.
   */
  void (*check)(void);
  Size (*bytes)(void); /* 0: this server does without */
  /* In every process that makes or finds it. `found`: it is filled already. */
  void (*attach)(void* memory, bool found);
};

/* From _PG_init under preload only; `piece` is static. They come in this order. */
void rdmacc_add_shared_piece(const RdmaccSharedPiece* piece);
}
