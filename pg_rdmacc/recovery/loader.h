/* Puts rows into the nodes by the batch, in the order in which they come. For the process that
 * gives the nodes their rows back, alone: nothing else writes meanwhile. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Of which a row is left alone if its table is gone. */
void rdmacc_loader_add_table(uint32 table);
void rdmacc_loader_drop_table(uint32 table);
/* Copies the write; false: its table is gone. */
bool rdmacc_loader_add(const BridgeWrite* write);
void rdmacc_loader_flush(void);
/* Makes the table with the id that it had, unless it is there. */
void rdmacc_loader_create_table(const rdmacc::ListedTable* table);
void rdmacc_loader_end(void);
}
