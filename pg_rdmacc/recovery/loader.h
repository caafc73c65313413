/* Puts rows into the nodes by the batch, in the order in which they come. For the process that
 * gives the nodes their rows back, alone: nothing else writes meanwhile. On a standby others read;
 * then a batch is one transaction of the engine, of whole transactions of the WAL. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Of which a row is left alone if its table is gone. */
void rdmacc_loader_add_table(uint32 table);
void rdmacc_loader_drop_table(uint32 table);
/* Copies the write; false: its table is gone. */
bool rdmacc_loader_add(const BridgeWrite* write);
/* Those that came since the last call are one transaction's, or may be seen one by one. */
void rdmacc_loader_end_transaction(void);
void rdmacc_loader_flush(void);
/* From now on, until rdmacc_loader_end(). */
void rdmacc_loader_has_readers(void);
/* Makes the table with the id that it had, unless it is there; on a standby, unless an applier
 * before this one has dropped it already. */
void rdmacc_loader_create_table(const rdmacc::ListedTable* table);
/* kOk: the nodes have one of its identity, under *id, which may be another's. */
rdmacc::Code rdmacc_loader_find_table(const rdmacc::ListedTable* table, uint32* id);
void rdmacc_loader_end(void);
}
