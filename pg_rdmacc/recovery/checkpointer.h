/* The background worker that keeps rows of rdmacc tables on disk: it gives the nodes their rows
 * back when the server starts, and makes checkpoints of them. docs/durability.md has the whole. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Registers it where rows are durable; from _PG_init under preload. */
void rdmacc_checkpointer_register(void);
}
